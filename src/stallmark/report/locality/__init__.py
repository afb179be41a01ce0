"""How a load reads: one page, a terminal and JSON."""
