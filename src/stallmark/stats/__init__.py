"""Statistics of series and of runs, thin over NumPy and SciPy, and every threshold with its reason."""
