"""Sharded collections: several ordinary collections that are built apart and searched as one."""
