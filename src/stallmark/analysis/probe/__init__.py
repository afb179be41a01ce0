"""Probes of raw storage: saturation, drift, and the share of it that a database achieved."""
