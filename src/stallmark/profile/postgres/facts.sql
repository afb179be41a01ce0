SELECT current_setting('server_version') AS version,
       (SELECT system_identifier::text FROM pg_control_system()) AS mark,
       coalesce(host(inet_server_addr()), 'localhost') || ':' || current_setting('port') AS name,
       pg_size_bytes(current_setting('shared_buffers')) AS pool_bytes,
       current_setting('track_io_timing')::boolean AS times_files,
       current_setting('track_wal_io_timing')::boolean AS times_log,
       pg_has_role('pg_read_all_stats', 'USAGE') AS sees_sessions
