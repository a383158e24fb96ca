"""What tells two parts of a collection, or two runs, apart."""
