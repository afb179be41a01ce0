"""Files of other tools: a reader for each format, and one module that dates them.

`recognise.detect_format` finds the format of a file by `kinds.yaml`. A reader yields samples: the values of counters at
the file's times. `attach/` puts them next to a run, `imports/` makes a profile of them; `dates` converts the times to
UTC. `units.yaml` has the units of counters, `sentences.yaml` what is said of files.
pandas, dateutil and DuckDB guess if a time is ambiguous: day before month, or an hour that a clock change repeats or
skips. Here each such time is refused, or the page reports the choice.
"""
