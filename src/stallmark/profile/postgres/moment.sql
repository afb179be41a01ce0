SELECT extract(epoch FROM statement_timestamp())::float8 AS server_clock,
       extract(epoch FROM pg_postmaster_start_time())::text AS start
