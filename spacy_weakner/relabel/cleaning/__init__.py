"""Confident learning: which labels contradict predictions made without them."""
