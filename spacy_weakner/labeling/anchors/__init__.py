"""Labels from the anchors of wikis and web pages (CoFEE, section 3.1)."""
