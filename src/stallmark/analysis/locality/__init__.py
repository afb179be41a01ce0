"""How a load reads: over the size of the pool, over the data, and over time."""
