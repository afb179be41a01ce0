-- Q11: important stock identification
-- The parts that are a considerable fraction of all the stock of a nation's suppliers.
SELECT ps_partkey,
       SUM(ps_supplycost * ps_availqty) AS stock_value
  FROM warehouse.partsupp
  JOIN warehouse.supplier ON s_suppkey = ps_suppkey
  JOIN warehouse.nation ON n_nationkey = s_nationkey
 WHERE n_name = ':nation'
 GROUP BY ps_partkey
HAVING SUM(ps_supplycost * ps_availqty)
       > (SELECT SUM(ps_supplycost * ps_availqty) * :fraction
            FROM warehouse.partsupp
            JOIN warehouse.supplier ON s_suppkey = ps_suppkey
            JOIN warehouse.nation ON n_nationkey = s_nationkey
           WHERE n_name = ':nation')
 ORDER BY stock_value DESC
