"""The memory curve: throughput and reads per transaction over the size of the buffer pool, and what follows."""
