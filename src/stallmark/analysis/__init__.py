"""The analysis: pure functions from run records to what the report shows.

`experiment.summarise` is the entry point. Nothing is imported here: the scenario model needs some of the words, but not
the code that computes the figures.
"""
