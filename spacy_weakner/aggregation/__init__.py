"""Combining sources: conflict policies, votes, and a label model. Docs in, arrays and entities out; no files."""
