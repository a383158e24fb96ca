"""The HTTP service: FastAPI over open collections, and a client with the methods of a local one."""
