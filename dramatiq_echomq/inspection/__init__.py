"""Looking into queues and repairing them, for the command line, the web page and programs. Knows only the protocol."""
