-- Q21: suppliers who kept orders waiting
-- Who in a nation was, how often, the only one of several suppliers of an order to be late.
SELECT TOP (100)
       s_name,
       COUNT_BIG(*) AS numwait
  FROM warehouse.supplier
  JOIN warehouse.lineitem AS l1 ON l1.l_suppkey = s_suppkey
  JOIN warehouse.orders ON o_orderkey = l1.l_orderkey
  JOIN warehouse.nation ON n_nationkey = s_nationkey
 WHERE o_orderstatus = 'F'
   AND l1.l_receiptdate > l1.l_commitdate
   AND EXISTS (SELECT 1
                 FROM warehouse.lineitem AS l2
                WHERE l2.l_orderkey = l1.l_orderkey
                  AND l2.l_suppkey <> l1.l_suppkey)
   AND NOT EXISTS (SELECT 1
                     FROM warehouse.lineitem AS l3
                    WHERE l3.l_orderkey = l1.l_orderkey
                      AND l3.l_suppkey <> l1.l_suppkey
                      AND l3.l_receiptdate > l3.l_commitdate)
   AND n_name = ':nation'
 GROUP BY s_name
 ORDER BY numwait DESC, s_name
