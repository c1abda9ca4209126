"""What `aggregate` is made of."""
