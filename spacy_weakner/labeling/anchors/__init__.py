"""Labels from the anchors of wiki pages (CoFEE, Section 3.1)."""
