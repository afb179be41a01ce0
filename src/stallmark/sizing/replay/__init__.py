"""The replay of a profile's I/O: its busiest windows as raw I/O, at rising multiples, until a service level breaks."""
