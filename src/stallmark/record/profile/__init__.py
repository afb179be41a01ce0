"""The record of a production server's profile: one folder, `profile.json` and its tables.

A profile collected from a server holds raw cumulative counters, of which the analysis makes intervals. One that was
imported from what others had recorded holds the intervals themselves. All that judges a profile reads intervals.
"""
