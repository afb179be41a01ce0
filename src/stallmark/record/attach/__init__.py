"""External measurements: made by another tool and another clock, and added to a closed run record.

`formats.read` turns a file into `Measurements`, one module per format. `times` finds what its times mean in UTC;
`attach` writes the rows that belong to a run into its record. Files are read with csv and zoneinfo. pandas and dateutil
guess where a time is ambiguous: day before month, an hour that a clock change repeats or skips. Here each such time is
refused, with its line.
"""
