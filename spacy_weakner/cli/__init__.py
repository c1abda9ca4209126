"""The command line: one module per command. Each parses its arguments, calls one function, and prints the result."""
