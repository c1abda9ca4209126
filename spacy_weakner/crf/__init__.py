"""Arithmetic of the linear-chain CRF in log space: kernel, decoding."""
