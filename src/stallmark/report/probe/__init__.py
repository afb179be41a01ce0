"""Probes of raw storage: page, figures, tables, terminal."""
