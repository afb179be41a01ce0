-- The schemas in which users of the database have tables, views, sequences, types and routines, with the names of all.
-- What an extension brought along is not theirs, and the sequence of a column comes and goes with it.
SELECT n.nspname AS schema_name, array_agg(DISTINCT o.name ORDER BY o.name) AS names
  FROM (SELECT c.tableoid AS catalog, c.oid, c.relnamespace AS schema, c.relname::text AS name
          FROM pg_class AS c
         WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S', 'c')
         UNION ALL
        SELECT p.tableoid, p.oid, p.pronamespace, p.proname::text
          FROM pg_proc AS p
         UNION ALL
        SELECT t.tableoid, t.oid, t.typnamespace, t.typname::text
          FROM pg_type AS t
         WHERE t.typtype IN ('d', 'e')) AS o
  JOIN pg_namespace AS n ON n.oid = o.schema
 WHERE n.nspname <> 'information_schema'
   AND n.nspname !~ '^pg_'
   AND NOT EXISTS (SELECT 1
                     FROM pg_depend AS d
                    WHERE d.classid = o.catalog
                      AND d.objid = o.oid
                      AND d.objsubid = 0
                      AND (d.deptype = 'e' OR d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass))
 GROUP BY n.nspname
