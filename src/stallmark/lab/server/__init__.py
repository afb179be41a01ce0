"""`stallmark server`: a SQL Server of your own in a container."""
