"""Trainings: one, folds, members, grids."""
