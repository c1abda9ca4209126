"""Labels from the anchors of wikis (CoFEE, section 3.1)."""
