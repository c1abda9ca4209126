"""What term lists and other sources say, as features of tokens and spans."""
