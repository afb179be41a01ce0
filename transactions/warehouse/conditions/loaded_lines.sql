-- There are as many lineitems as the generator makes at this scale factor.
SELECT 'lineitem' AS table_name, :lineitem AS expected, present
  FROM (SELECT SUM(CAST(1 AS bigint)) AS present FROM warehouse.lineitem) AS counted
 WHERE present <> :lineitem
