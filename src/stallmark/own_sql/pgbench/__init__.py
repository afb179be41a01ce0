"""pgbench's scripts as they are: its expressions, functions and distributions, and its commands."""
