-- The files of every table and index of a database. Of the system's own (mapped) ones pg_class holds no file.
SELECT current_database() AS database,
       pg_relation_filepath(one.oid) AS path,
       format('%s.%s', one.relnamespace::regnamespace, one.relname) AS relation,
       format('%s.%s', home.relnamespace::regnamespace, home.relname) AS "table",
       CASE one.relkind WHEN 'i' THEN 'index' WHEN 't' THEN 'toast' WHEN 'S' THEN 'sequence' ELSE 'table' END AS kind
  FROM pg_class one
  LEFT JOIN pg_index entry ON entry.indexrelid = one.oid
  LEFT JOIN pg_class toasted ON toasted.reltoastrelid = coalesce(entry.indrelid, one.oid)
  JOIN pg_class home ON home.oid = coalesce(toasted.oid, entry.indrelid, one.oid)
 WHERE pg_relation_filepath(one.oid) IS NOT NULL
