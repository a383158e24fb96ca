"""The HTTP service: a FastAPI application for open collections, and a client with the methods of a local one."""
