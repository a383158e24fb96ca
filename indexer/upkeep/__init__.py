"""What looks after a collection: delete, compact, verify, repair, report."""
