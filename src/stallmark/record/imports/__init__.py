"""Profiles from recordings of other tools: Perfmon, iostat, sar and Prometheus. `build.import_profile` writes the
folder. There is one module per format; each adds its values to `Recording`, as counts over the observed time. Files are
read as streams: only the profile's values are held in memory."""
