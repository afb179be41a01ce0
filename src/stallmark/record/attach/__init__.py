"""External measurements: made by another tool and another clock, and put into a closed run record.

`formats.read` turns a file into `Measurements`, one module per format; `times` says what its times mean in UTC;
`attach` puts the rows that belong to a run into its record. Reading is done here, with csv and zoneinfo: pandas and
dateutil guess where a time is ambiguous (day before month, an hour that a clock change repeats or skips), and each
such guess is refused here, with the line it stands in. What they would replace is less than what keeps them from it.
"""
