"""The reading of records: from their tables to figures on counters, load, latency, waits and devices."""
