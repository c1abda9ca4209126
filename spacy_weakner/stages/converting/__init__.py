"""What `convert` is made of."""
