-- Q15: top supplier
-- Whoever contributed most to the revenue of a quarter.
WITH revenue AS (
  SELECT l_suppkey AS supplier_no,
         SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
    FROM warehouse.lineitem
   WHERE l_shipdate >= DATE ':date'
     AND l_shipdate < DATE ':date' + INTERVAL '3' MONTH
   GROUP BY l_suppkey
)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
  FROM warehouse.supplier
  JOIN revenue ON supplier_no = s_suppkey
 WHERE total_revenue = (SELECT MAX(total_revenue) FROM revenue)
 ORDER BY s_suppkey
