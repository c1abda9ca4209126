"""What `crossfit` is made of."""
