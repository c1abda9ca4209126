"""Checks of files and settings before training."""
