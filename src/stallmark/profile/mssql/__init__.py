"""SQL Server 2017 and later, read through its management views with VIEW SERVER STATE alone."""
