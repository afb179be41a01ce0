"""Steady state: the judgement whether the load was steady while it was measured."""
