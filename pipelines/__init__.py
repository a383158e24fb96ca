"""What one asks of a collection: search, filter, evaluate."""
