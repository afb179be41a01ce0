"""PostgreSQL 16 and later, read through its statistics views with pg_monitor alone."""
