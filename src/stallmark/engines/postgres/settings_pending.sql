-- Settings that wait for a restart of the server: those that its files give otherwise than it has them, and those that
-- it has from a file and that no file gives any more. The server's own mark stays on one that was put back since.
SELECT s.name
  FROM pg_settings AS s
 WHERE s.pending_restart
   AND (s.source = 'configuration file'
        OR EXISTS (SELECT FROM pg_file_settings AS f WHERE f.name = s.name AND f.error IS NOT NULL))
 ORDER BY s.name
