"""Profiles from recordings of other tools: Perfmon, iostat, sar and Prometheus.

`build.import_profile` writes the folder. There is one module per format; each adds rows of its columns to `Recording`,
as counts over the observed time. `counters.csv` has the column of each counter. Files are read as streams: only the
values that a profile uses are held in memory.
"""
