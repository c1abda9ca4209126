"""Stages that improve labels: complete, clean, pick, soften, augment."""
