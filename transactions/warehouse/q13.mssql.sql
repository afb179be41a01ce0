-- Q13: customer distribution
-- How many customers have how many orders, without those orders whose comment has two words.
SELECT c_count,
       COUNT_BIG(*) AS custdist
  FROM (SELECT c_custkey,
               COUNT(o_orderkey) AS c_count
          FROM warehouse.customer
          LEFT JOIN warehouse.orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%:word1%:word2%'
         GROUP BY c_custkey) AS c_orders
 GROUP BY c_count
 ORDER BY custdist DESC, c_count DESC
