-- Q5: local supplier volume
-- Revenue of a year from customers who bought in their own nation, by the nations of a region.
SELECT n_name,
       SUM(l_extendedprice * (1 - l_discount)) AS revenue
  FROM warehouse.customer
  JOIN warehouse.orders ON o_custkey = c_custkey
  JOIN warehouse.lineitem ON l_orderkey = o_orderkey
  JOIN warehouse.supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey
  JOIN warehouse.nation ON n_nationkey = s_nationkey
  JOIN warehouse.region ON r_regionkey = n_regionkey
 WHERE r_name = ':region'
   AND o_orderdate >= DATE ':date'
   AND o_orderdate < DATE ':date' + INTERVAL '1' YEAR
 GROUP BY n_name
 ORDER BY revenue DESC
