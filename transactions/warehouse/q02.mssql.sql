-- Q2: minimum cost supplier
-- Who in the region supplies parts of a size and a metal at the lowest cost there is in that region.
SELECT TOP (100)
       s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
  FROM warehouse.part
  JOIN warehouse.partsupp ON ps_partkey = p_partkey
  JOIN warehouse.supplier ON s_suppkey = ps_suppkey
  JOIN warehouse.nation ON n_nationkey = s_nationkey
  JOIN warehouse.region ON r_regionkey = n_regionkey
 WHERE p_size = :size
   AND p_type LIKE '%:type'
   AND r_name = ':region'
   AND ps_supplycost = (SELECT MIN(ps_supplycost)
                          FROM warehouse.partsupp
                          JOIN warehouse.supplier ON s_suppkey = ps_suppkey
                          JOIN warehouse.nation ON n_nationkey = s_nationkey
                          JOIN warehouse.region ON r_regionkey = n_regionkey
                         WHERE ps_partkey = p_partkey
                           AND r_name = ':region')
 ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
