"""SQL Server: engine, connection, bulk load, memory cap, files. Nothing here is imported unless it is used."""
