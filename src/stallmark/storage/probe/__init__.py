"""Probes: raw storage, measured without a database, for its rates, its saturation, and changes over time."""
