SELECT wait_type, wait_time_ms FROM sys.dm_exec_session_wait_stats WHERE session_id = {session} AND wait_time_ms > 0
