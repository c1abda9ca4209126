"""Labels of term lists and other sources as features of tokens."""
