-- Whether tempdb's system tables are in memory, from 2019 on: one row.
SELECT CAST(SERVERPROPERTY('IsTempdbMetadataMemoryOptimized') AS int) AS metadata_in_memory
