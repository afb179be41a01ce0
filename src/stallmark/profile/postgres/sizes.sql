SELECT sum(pg_database_size(oid))::bigint AS data,
       (SELECT sum(size)::bigint FROM pg_ls_waldir()) AS log
  FROM pg_database
 WHERE has_database_privilege(oid, 'CONNECT') OR pg_has_role('pg_read_all_stats', 'USAGE')
