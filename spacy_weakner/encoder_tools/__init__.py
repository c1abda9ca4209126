"""Adapting a Transformer to text of a domain, and word vectors distilled from one."""
