"""Links entities to the ids of a term list."""
