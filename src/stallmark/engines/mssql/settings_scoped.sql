-- The database's own configuration: parallelism, estimation, feedback.
SELECT s.name, CAST(s.value AS nvarchar(128)) AS value
  FROM sys.database_scoped_configurations AS s
