"""A component that chooses between candidate entities."""
