"""Formats of annotation tools, one module each."""
