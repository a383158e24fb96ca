"""The command line, `sonde`."""
