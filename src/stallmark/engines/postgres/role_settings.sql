-- What the role, the database or both give to our sessions: name, value, and the statement that gives another one.
-- What counts first stands first. Values of extensions may be secrets.
SELECT split_part(given, '=', 1) AS name,
       substr(given, strpos(given, '=') + 1) AS value,
       CASE
       WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL'
       WHEN s.setrole = 0 THEN format('ALTER DATABASE %I', current_database())
       WHEN s.setdatabase = 0 THEN format('ALTER ROLE %I', session_user)
       ELSE format('ALTER ROLE %I IN DATABASE %I', session_user, current_database())
       END AS statement
  FROM pg_db_role_setting AS s, unnest(s.setconfig) AS given
 WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
   AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
   AND split_part(given, '=', 1) NOT LIKE '%.%'
 ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC, name
