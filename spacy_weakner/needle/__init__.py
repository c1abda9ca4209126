"""NEEDLE (Jiang et al. 2021): completion of weak labels, their confidence, and the noise-aware loss."""
