"""What every head promises. What only one of them does is tested in its own folder."""
