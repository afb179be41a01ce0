-- [session_settings]
-- The settings that end sessions, as they are for this one, and where their values come from.
SELECT name, setting, coalesce(unit, '') AS unit, source FROM pg_settings WHERE name = ANY(%s)

-- [primary]
-- The server that this standby follows, as far as this role may see it. Aurora refuses it.
SELECT concat_ws(':', sender_host, sender_port) AS address FROM pg_stat_wal_receiver

-- [writable]
-- Whether something can be written here: by the server, by the session's settings, and by the role's rights.
SELECT pg_is_in_recovery() AS standby,
       current_setting('default_transaction_read_only') = 'on' AS reads_only,
       current_setting('session_replication_role') = 'replica' AS is_replica,
       quote_ident(session_user) AS login,
       quote_ident(current_user) AS role,  -- another one if the login has SET role
       quote_ident(current_database()) AS database,
       has_database_privilege(current_database(), 'CREATE') AS creates,
       EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'stallmark') AS is_built,
       (SELECT min(format('%%I.%%I', n.nspname, c.relname))
          FROM pg_class AS c
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE n.nspname = ANY(%s)
           AND c.relkind IN ('r', 'p')
           AND NOT (has_schema_privilege(n.oid, 'USAGE')
                    AND has_table_privilege(c.oid, 'SELECT')
                    AND has_table_privilege(c.oid, 'INSERT')
                    AND has_table_privilege(c.oid, 'UPDATE')
                    AND has_table_privilege(c.oid, 'DELETE'))) AS only_read
