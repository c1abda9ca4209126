"""What `label` is made of: sources, what they say, and the processes that run them."""
