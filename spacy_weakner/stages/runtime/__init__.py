"""How stages run: what their commands share."""
