-- Whether this login may read the files: an event that is there, whichever. All of them may be a gigabyte, and the server
-- is not waited for as long as it reads that.
SELECT TOP (1) happened.object_name AS happened
  FROM sys.fn_xe_file_target_read_file(N'system_health*.xel', NULL, NULL, NULL) AS happened
