"""Runs of decision-support queries: figures, comparison, findings."""
