"""Runs of several loads: every load by itself, and what they did to each other."""
