"""Corpus in, corpus out: one module per stage. Stages know no head; they work on Docs."""
