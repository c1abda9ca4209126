"""Adaptation of a Transformer to text of a domain, distillation of its word vectors, and word vectors of text."""
