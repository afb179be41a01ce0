-- What the session system_health, which every server runs, has written to its files since then.
SELECT CONVERT(varchar(23), happened.timestamp_utc, 126) AS happened, happened.event_data AS event
  FROM sys.fn_xe_file_target_read_file(N'system_health*.xel', NULL, NULL, NULL) AS happened
 WHERE happened.object_name = N'xml_deadlock_report' AND happened.timestamp_utc > '{since}'
 ORDER BY happened.timestamp_utc
