"""Files of other tools: a module for each format, and those that its samples go through.

`recognise.detect_format` finds the format of a file by `kinds.yaml`. A reader yields samples: the values of counters at
the file's times. `attach/` puts them next to a run. A profile is made of them:

    file → samples → Readings: a row for each time, a column for each counter
         → Part: each column with its meaning, by counters.csv, and its device, database or file
         → Amounts: counts over the spans between rows → sums by class of file → imported_profile: the folder

The module of each format chooses what counts. Files are read as streams: only the values that a profile uses are held
in memory. `units.yaml` has the units of counters, `sentences.yaml` the refusals and the notes on files.

`dates` converts the times to UTC. pandas, dateutil and DuckDB guess if a time is ambiguous: day before month, or an
hour that a clock change repeats or skips. Here each such time is refused, or the page reports the choice.
"""
