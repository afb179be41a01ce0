"""The reads of a load: over the size of the pool, over the data, and over time."""
