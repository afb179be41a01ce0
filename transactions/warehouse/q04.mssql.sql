-- Q4: order priority checking
-- How many orders of a quarter had a line that came too late, by priority.
SELECT o_orderpriority,
       COUNT_BIG(*) AS order_count
  FROM warehouse.orders
 WHERE o_orderdate >= CAST(':date' AS date)
   AND o_orderdate < DATEADD(month, 3, CAST(':date' AS date))
   AND EXISTS (SELECT 1
                 FROM warehouse.lineitem
                WHERE l_orderkey = o_orderkey
                  AND l_commitdate < l_receiptdate)
 GROUP BY o_orderpriority
 ORDER BY o_orderpriority
