"""Sizing: the load of a profile against what candidates carried of it."""
