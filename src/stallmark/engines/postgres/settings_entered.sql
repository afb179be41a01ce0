-- What ALTER SYSTEM has set of these: name and value as it was written. Needs a superuser, or a grant.
SELECT f.name, f.setting AS value
  FROM pg_file_settings AS f
 WHERE f.sourcefile LIKE '%%/postgresql.auto.conf' AND f.name = ANY(%s)
 ORDER BY f.seqno
