"""NEEDLE (Jiang et al. 2021): completion of weak labels, their confidence, and the loss that is aware of noise."""
