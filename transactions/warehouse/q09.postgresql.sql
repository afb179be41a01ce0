-- Q9: product type profit
-- Profit on the parts with a colour in their name, by nation of the supplier and year.
SELECT nation,
       o_year,
       SUM(amount) AS sum_profit
  FROM (SELECT n_name AS nation,
               EXTRACT(YEAR FROM o_orderdate) AS o_year,
               l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
          FROM warehouse.part
          JOIN warehouse.lineitem ON l_partkey = p_partkey
          JOIN warehouse.supplier ON s_suppkey = l_suppkey
          JOIN warehouse.partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
          JOIN warehouse.orders ON o_orderkey = l_orderkey
          JOIN warehouse.nation ON n_nationkey = s_nationkey
         WHERE p_name LIKE '%:colour%') AS profit
 GROUP BY nation, o_year
 ORDER BY nation, o_year DESC
