"""Probes of raw storage: saturation, drift, and what the database had of it."""
