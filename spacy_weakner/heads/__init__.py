"""The base of all trainable components."""
