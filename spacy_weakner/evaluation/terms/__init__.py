"""Which terms of a list help and which harm."""
