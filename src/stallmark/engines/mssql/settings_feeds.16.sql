-- What reads the log beside the server, from 2022 on, and whether tables keep a ledger: one row.
SELECT d.is_change_feed_enabled AS change_feed, d.is_ledger_on AS ledger
  FROM sys.databases AS d
 WHERE d.database_id = DB_ID()
