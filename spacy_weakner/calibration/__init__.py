"""Calibration of scores as probabilities: temperature, outside bias, thresholds, confidence of weak labels."""
