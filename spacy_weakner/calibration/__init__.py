"""Scores that mean probabilities: temperature, outside bias, thresholds, confidence of weak labels."""
