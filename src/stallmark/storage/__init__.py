"""The storage under the database: block devices, emulated arrays, and probes of raw storage."""
