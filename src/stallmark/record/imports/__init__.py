"""Profiles from recordings of other tools: Perfmon, iostat, sar, Prometheus and any CSV.

    file → samples (formats/) → Readings: a row for each time, a column for each counter
         → Series: each column with its meaning, by counters.csv, and its device, database or file
         → Amounts: counts over the spans between rows → sums by class of file → build: the folder of a profile

The module of each format chooses what counts. Files are read as streams: only the values that a profile uses are held
in memory.
"""
