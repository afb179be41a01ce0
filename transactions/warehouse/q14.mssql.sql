-- Q14: promotion effect
-- The percentage of a month's revenue that came from promoted parts.
SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
       / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
  FROM warehouse.lineitem
  JOIN warehouse.part ON p_partkey = l_partkey
 WHERE l_shipdate >= CAST(':date' AS date)
   AND l_shipdate < DATEADD(month, 1, CAST(':date' AS date))
