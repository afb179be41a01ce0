"""Files of other tools, read once for all: a reader for each format, and one module that dates them.

`recognise.detect_format` finds the format of a file; its samples hold the values of counters by the times that the file
writes. `attach/` puts them beside a run, `imports/` makes a profile of them; `dates` finds what the times mean in UTC.
pandas and dateutil guess where a time is ambiguous: day before month, an hour that a clock change repeats or skips.
Here each such time is refused, or the page says how it was taken.
"""
