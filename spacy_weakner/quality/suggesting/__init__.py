"""The parts of `suggest`."""
