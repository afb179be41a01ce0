-- Q3: shipping priority
-- The most valuable orders of a market segment that were not yet shipped on a day.
SELECT TOP (10)
       l_orderkey,
       SUM(l_extendedprice * (1 - l_discount)) AS revenue,
       o_orderdate,
       o_shippriority
  FROM warehouse.customer
  JOIN warehouse.orders ON o_custkey = c_custkey
  JOIN warehouse.lineitem ON l_orderkey = o_orderkey
 WHERE c_mktsegment = ':segment'
   AND o_orderdate < CAST(':date' AS date)
   AND l_shipdate > CAST(':date' AS date)
 GROUP BY l_orderkey, o_orderdate, o_shippriority
 ORDER BY revenue DESC, o_orderdate
