"""A component that decides between candidates for entities."""
