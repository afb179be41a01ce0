-- Q12: shipping modes and order priority
-- How many lines by two ways of shipping came too late in a year, of urgent orders and of others.
SELECT l_shipmode,
       SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
       SUM(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_line_count
  FROM warehouse.orders
  JOIN warehouse.lineitem ON l_orderkey = o_orderkey
 WHERE l_shipmode IN (':shipmode1', ':shipmode2')
   AND l_commitdate < l_receiptdate
   AND l_shipdate < l_commitdate
   AND l_receiptdate >= CAST(':date' AS date)
   AND l_receiptdate < DATEADD(year, 1, CAST(':date' AS date))
 GROUP BY l_shipmode
 ORDER BY l_shipmode
