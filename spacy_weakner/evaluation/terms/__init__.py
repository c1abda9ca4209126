"""Evaluation of term lists: which terms help, and which do harm."""
