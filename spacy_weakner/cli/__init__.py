"""The command line: one module per command. Each parses, calls one function, and prints."""
