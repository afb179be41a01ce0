-- The schemas in which users of the database have tables, views, sequences and routines, with one of them each.
-- What an extension brought along is not theirs.
SELECT n.nspname AS schema_name, min(o.name) AS one
  FROM (SELECT c.tableoid AS catalog, c.oid, c.relnamespace AS schema, c.relname::text AS name
          FROM pg_class AS c
         WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
         UNION ALL
        SELECT p.tableoid, p.oid, p.pronamespace, p.proname::text
          FROM pg_proc AS p) AS o
  JOIN pg_namespace AS n ON n.oid = o.schema
 WHERE n.nspname <> 'information_schema'
   AND n.nspname !~ '^pg_'
   AND NOT EXISTS (SELECT 1
                     FROM pg_depend AS d
                    WHERE d.classid = o.catalog AND d.objid = o.oid AND d.deptype = 'e')
 GROUP BY n.nspname
