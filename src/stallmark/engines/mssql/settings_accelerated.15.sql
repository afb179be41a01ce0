-- Accelerated database recovery, from 2019 on: one row.
SELECT d.is_accelerated_database_recovery_on AS accelerated_recovery
  FROM sys.databases AS d
 WHERE d.database_id = DB_ID()
