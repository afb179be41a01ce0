-- Every database has a catalogue of its own: one does not know the tables of another.
SELECT current_database() AS database,
       home.oid::bigint AS number,
       home.relnamespace::regnamespace || '.' || home.relname AS relation
  FROM pg_class home
 WHERE home.relkind IN ('r', 'm', 't')
