"""Docs and their annotations on disk and in memory: rows, CoNLL, DocBin, tags, groups of weak labels."""
