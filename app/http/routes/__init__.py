"""The service's routes, one module for what belongs together."""
