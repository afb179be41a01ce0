"""The cause of a difference between two variants, by the parts of their response times."""
