"""The report on the reads of a load: one page, a terminal view and JSON."""
