"""What `augment` is made of."""
