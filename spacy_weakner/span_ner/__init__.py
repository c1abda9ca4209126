"""Named-entity recognition by classifying spans, for annotations with holes (Li et al. 2021; its weighted sampling of
negatives)."""
