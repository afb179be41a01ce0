-- The same for writes of its log. Every database has a log of its own, and so an event session.
CREATE EVENT SESSION {session} ON SERVER
    ADD EVENT sqlserver.file_write_completed (WHERE (database_id = {database} AND file_id = {log_file}))
    ADD TARGET package0.histogram
        (SET filtering_event_name = N'sqlserver.file_write_completed', source = N'duration', source_type = 0,
             slots = 4096)
    WITH (MAX_MEMORY = {memory_kib} KB, EVENT_RETENTION_MODE = ALLOW_SINGLE_EVENT_LOSS, MAX_DISPATCH_LATENCY = 1 SECONDS,
          STARTUP_STATE = OFF);
ALTER EVENT SESSION {session} ON SERVER STATE = START;
