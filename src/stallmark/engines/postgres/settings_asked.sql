-- Settings by name: value, who may change it and when, what gave the value, and whether this role may change it.
SELECT s.name, current_setting(s.name) AS value, s.context, s.source,
       has_parameter_privilege(s.name, 'ALTER SYSTEM') AS may
  FROM pg_settings AS s
 WHERE s.name = ANY(%s)
