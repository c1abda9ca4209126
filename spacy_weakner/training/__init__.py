"""Readers and callbacks for [training]."""
