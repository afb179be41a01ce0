"""Comparisons of variants over runs: may they be compared, and which is better."""
