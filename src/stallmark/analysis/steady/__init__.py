"""Steady state: was the load steady while it was measured?"""
