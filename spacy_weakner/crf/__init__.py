"""Computations of the linear-chain CRF: kernel, decoding."""
