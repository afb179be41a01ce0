"""From the tables of a record to figures: counters, load, latency, waits, devices."""
