-- Counts the reads of one database's data files by how long they took. The histogram is in memory and goes with the
-- session.
CREATE EVENT SESSION {session} ON SERVER
    ADD EVENT sqlserver.file_read_completed (WHERE (database_id = {database} AND file_id <> {log_file}))
    ADD TARGET package0.histogram
        (SET filtering_event_name = N'sqlserver.file_read_completed', source = N'duration', source_type = 0,
             slots = 4096)
    WITH (MAX_MEMORY = {memory_kib} KB, EVENT_RETENTION_MODE = ALLOW_SINGLE_EVENT_LOSS, MAX_DISPATCH_LATENCY = 1 SECONDS,
          STARTUP_STATE = OFF);
ALTER EVENT SESSION {session} ON SERVER STATE = START;
