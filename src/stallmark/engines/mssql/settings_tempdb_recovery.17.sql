-- Accelerated database recovery of tempdb, from 2025 on: one row.
SELECT d.is_accelerated_database_recovery_on AS accelerated_recovery
  FROM sys.databases AS d
 WHERE d.database_id = 2
