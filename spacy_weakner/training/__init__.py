"""Readers, callbacks and loggers for [training]."""
