-- [settings_asked]
-- Settings by name: value, who may change it and when, what gave the value, and whether this role may change it.
SELECT s.name, current_setting(s.name) AS value, s.context, s.source,
       has_parameter_privilege(s.name, 'ALTER SYSTEM') AS may
  FROM pg_settings AS s
 WHERE s.name = ANY(%s)

-- [settings_pending]
-- Settings that wait for a restart of the server: those that its files give otherwise than it has them, and those that
-- it has from a file and that no file gives any more. The server's own mark stays on one that was put back since.
SELECT s.name
  FROM pg_settings AS s
 WHERE s.pending_restart
   AND (s.source = 'configuration file'
        OR EXISTS (SELECT FROM pg_file_settings AS f WHERE f.name = s.name AND f.error IS NOT NULL))
 ORDER BY s.name

-- [settings_unread]
-- Files of the configuration that were changed since the server read them. Needs pg_read_server_files.
SELECT f.path
  FROM (SELECT sourcefile FROM pg_file_settings
         UNION SELECT current_setting('hba_file')
         UNION SELECT current_setting('ident_file')) AS f (path)
 WHERE (pg_stat_file(f.path, true)).modification > pg_conf_load_time()
 ORDER BY f.path

-- [settings_entered]
-- What ALTER SYSTEM has set of these: name and value as it was written. Needs a superuser, or a grant.
SELECT f.name, f.setting AS value
  FROM pg_file_settings AS f
 WHERE f.sourcefile LIKE '%%/postgresql.auto.conf' AND f.name = ANY(%s)
 ORDER BY f.seqno
