"""Abbreviations that a text defines itself."""
