"""The service's routes, one module for each group of routes."""
