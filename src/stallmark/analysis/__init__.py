"""From run records to what the report shows. Pure functions: the records are all they know.

`experiment.summarise` is the way in. Nothing is imported here: a scenario's model needs some of the words, and not what
computes the figures.
"""
