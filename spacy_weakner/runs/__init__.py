"""Trainings: single ones, folds, ensembles, grids."""
