"""Execution of stages: shards, receipts, locks, processes."""
