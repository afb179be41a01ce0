-- Files of the configuration that were changed since the server read them. Needs pg_read_server_files.
SELECT f.path
  FROM (SELECT sourcefile FROM pg_file_settings
         UNION SELECT current_setting('hba_file')
         UNION SELECT current_setting('ident_file')) AS f (path)
 WHERE (pg_stat_file(f.path, true)).modification > pg_conf_load_time()
 ORDER BY f.path
