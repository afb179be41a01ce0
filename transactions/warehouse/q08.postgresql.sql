-- Q8: national market share
-- The share of a nation in what its region bought of a type of part, in two years.
SELECT o_year,
       SUM(CASE WHEN nation = ':nation' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share
  FROM (SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year,
               l_extendedprice * (1 - l_discount) AS volume,
               n2.n_name AS nation
          FROM warehouse.part
          JOIN warehouse.lineitem ON l_partkey = p_partkey
          JOIN warehouse.supplier ON s_suppkey = l_suppkey
          JOIN warehouse.orders ON o_orderkey = l_orderkey
          JOIN warehouse.customer ON c_custkey = o_custkey
          JOIN warehouse.nation AS n1 ON n1.n_nationkey = c_nationkey
          JOIN warehouse.region ON r_regionkey = n1.n_regionkey
          JOIN warehouse.nation AS n2 ON n2.n_nationkey = s_nationkey
         WHERE r_name = ':region'
           AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
           AND p_type = ':type') AS all_nations
 GROUP BY o_year
 ORDER BY o_year
