"""Which sentences to annotate next: uncertainty, disagreement, diversity."""
