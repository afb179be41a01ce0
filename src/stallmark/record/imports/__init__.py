"""Profiles from what other tools recorded: Perfmon, iostat, sar and Prometheus.

`build.import_profile` writes the folder. There is one module per format; each puts what it reads into `Recording`, as
counts over the time that was really seen. Files are read as streams: only what the profile keeps is held in memory.
"""
