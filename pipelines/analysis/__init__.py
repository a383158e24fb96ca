"""What clusters, topics, maps and reports share."""
