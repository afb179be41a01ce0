-- An order has one to seven lineitems, numbered through, and a lineitem has its order.
SELECT COALESCE(o_orderkey, l_orderkey) AS orderkey, lines, first_line, last_line
  FROM warehouse.orders
  FULL JOIN (SELECT l_orderkey,
                    COUNT(*) AS lines,
                    MIN(l_linenumber) AS first_line,
                    MAX(l_linenumber) AS last_line
               FROM warehouse.lineitem
              GROUP BY l_orderkey) AS l ON l_orderkey = o_orderkey
 WHERE o_orderkey IS NULL
    OR l_orderkey IS NULL
    OR first_line <> 1
    OR last_line <> lines
    OR lines > 7
