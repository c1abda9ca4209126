"""RoSTER (Meng et al. 2021): noise-robust learning, self-training, and contextual augmentation."""
