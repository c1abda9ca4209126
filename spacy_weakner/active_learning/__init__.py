"""Selection of sentences to annotate next: uncertainty, disagreement, diversity."""
