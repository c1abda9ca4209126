"""Pages of wikis and of the web: reading them, and finding the links in their text."""
