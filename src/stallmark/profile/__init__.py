"""The profile of a server in production: read its counters every 15 seconds, for hours or days, and change nothing."""
