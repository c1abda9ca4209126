"""RoSTER (Meng et al. 2021): a loss that is robust to noise, self-training, and contextual augmentation."""
