-- Query Store as it is, not as it was asked for: one row; none in a system database.
SELECT q.actual_state_desc AS mode, q.query_capture_mode_desc AS capture
  FROM sys.database_query_store_options AS q
