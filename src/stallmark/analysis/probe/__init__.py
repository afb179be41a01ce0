"""Probes of raw storage: saturation, drift, and the share of the raw performance that a database achieved."""
