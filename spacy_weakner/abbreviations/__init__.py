"""Detects abbreviations that a text defines."""
