"""What `clean` is made of: who judges which Doc, what is suspect, and how it is written."""
