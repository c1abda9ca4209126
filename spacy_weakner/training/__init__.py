"""Readers, callbacks and augmenters for training configs."""
