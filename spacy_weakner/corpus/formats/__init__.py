"""Formats of annotation tools, one file each."""
