-- Q20: potential part promotion
-- The suppliers of a nation who have more in stock of parts of a colour than half of what they shipped in a year.
SELECT s_name, s_address
  FROM warehouse.supplier
  JOIN warehouse.nation ON n_nationkey = s_nationkey
 WHERE n_name = ':nation'
   AND s_suppkey IN (SELECT ps_suppkey
                       FROM warehouse.partsupp
                      WHERE ps_partkey IN (SELECT p_partkey
                                             FROM warehouse.part
                                            WHERE p_name LIKE ':colour%')
                        AND ps_availqty > (SELECT 0.5 * SUM(l_quantity)
                                             FROM warehouse.lineitem
                                            WHERE l_partkey = ps_partkey
                                              AND l_suppkey = ps_suppkey
                                              AND l_shipdate >= CAST(':date' AS date)
                                              AND l_shipdate < DATEADD(year, 1, CAST(':date' AS date))))
 ORDER BY s_name
