"""The embedded PostgreSQL: a server of our own in its own folder."""
