-- Q18: large volume customer
-- Who placed the largest orders.
SELECT TOP (100)
       c_name,
       c_custkey,
       o_orderkey,
       o_orderdate,
       o_totalprice,
       SUM(l_quantity) AS sum_qty
  FROM warehouse.customer
  JOIN warehouse.orders ON o_custkey = c_custkey
  JOIN warehouse.lineitem ON l_orderkey = o_orderkey
 WHERE o_orderkey IN (SELECT l_orderkey
                        FROM warehouse.lineitem
                       GROUP BY l_orderkey
                      HAVING SUM(l_quantity) > :quantity)
 GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
 ORDER BY o_totalprice DESC, o_orderdate
