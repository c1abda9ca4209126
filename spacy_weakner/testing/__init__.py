"""Checks for packages that add to this one."""
