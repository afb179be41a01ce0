"""Reports of query runs: charts, tables and the terminal view."""
