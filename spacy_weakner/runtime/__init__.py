"""How stages run: shards, receipts, locks, processes."""
