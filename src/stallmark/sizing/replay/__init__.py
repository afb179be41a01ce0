"""The replay of a profile's I/O: its busiest windows as raw I/O, at multiples of it, until a service level breaks."""
