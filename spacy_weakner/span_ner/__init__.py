"""Named-entity recognition by classifying spans, for incomplete annotations (Li et al. 2021, and its successor with
weighted negative sampling)."""
