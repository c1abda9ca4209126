"""The recipe `best`: all that there is, also at prediction time, and a decision that is learned from the gold."""
