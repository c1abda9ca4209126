"""Adapting a Transformer to text of a domain, word vectors distilled from one, and those of text."""
