"""The front doors of Sonde: the command line, the web UI, the HTTP service. They compute nothing themselves."""
