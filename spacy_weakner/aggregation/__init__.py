"""Combination of sources: conflict policies, votes, and a label model. From Docs to arrays and entities; no files."""
