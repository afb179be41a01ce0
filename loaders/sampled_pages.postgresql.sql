-- Pages spread evenly over all tables and indexes of some schemas, with what they keep outside their rows, as they are on
-- the disk. Parameters: the schemas, how many pages. A relation's file is continued in another one after each GiB.
WITH relations AS (
    SELECT c.oid, pg_relation_size(c.oid) / 8192 AS pages
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_class kept_outside ON kept_outside.reltoastrelid = c.oid
      LEFT JOIN pg_namespace owner ON owner.oid = kept_outside.relnamespace
     WHERE c.relkind IN ('r', 't', 'i') AND COALESCE(owner.nspname, n.nspname) = ANY(%s)
), placed AS (
    SELECT oid, pages, SUM(pages) OVER (ORDER BY oid) - pages AS before, SUM(pages) OVER () AS total
      FROM relations
     WHERE pages > 0
), sampled AS (
    SELECT oid, (floor(total * (number + 0.5) / wanted) - before)::bigint AS page
      FROM (SELECT %s::int AS wanted) AS w
     CROSS JOIN generate_series(0, wanted - 1) AS number
      JOIN placed ON floor(total * (number + 0.5) / wanted) BETWEEN before AND before + pages - 1
)
SELECT pg_read_binary_file(
           pg_relation_filepath(oid) || CASE WHEN page < 131072 THEN '' ELSE '.' || page / 131072 END,
           page %% 131072 * 8192, 8192)
  FROM sampled
