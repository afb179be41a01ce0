"""Measurements made elsewhere, by another tool and another clock, put into a closed run record.

`formats.read` turns a file into `Measurements`, one module per format; `times` says what its times mean in UTC;
`attach` puts the rows that belong to a run into its record.
"""
