-- Accelerated database recovery, from 2019 on: one row.
SELECT is_accelerated_database_recovery_on AS accelerated_recovery
  FROM sys.databases
 WHERE database_id = DB_ID()
