"""Corpora as other tools write and read them."""
