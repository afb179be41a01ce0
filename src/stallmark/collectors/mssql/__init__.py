"""Collectors of SQL Server 2017 and later."""
