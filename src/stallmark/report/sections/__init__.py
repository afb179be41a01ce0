"""The sections of a report, one file each: figures and tables."""
