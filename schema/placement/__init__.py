"""The physical design of a database: files, filegroups and tablespaces."""
