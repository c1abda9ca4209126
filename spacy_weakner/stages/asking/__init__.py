"""The parts of `ask`."""
