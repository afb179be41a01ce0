-- What the session system_health, which every server runs, has written to its files since then. The cast is as
-- Microsoft's own example has it: without one the server has been seen to find no event.
SELECT CONVERT(varchar(23), happened.timestamp_utc, 126) AS happened, happened.event_data AS event
  FROM sys.fn_xe_file_target_read_file(N'{file}', NULL, NULL, NULL) AS happened
 WHERE happened.object_name = N'xml_deadlock_report' AND CAST(happened.timestamp_utc AS datetime2(7)) > '{since}'
 ORDER BY happened.timestamp_utc
