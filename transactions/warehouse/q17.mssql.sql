-- Q17: small-quantity-order revenue
-- What would be lost in a year if small orders of some parts were no longer filled.
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
  FROM warehouse.lineitem
  JOIN warehouse.part ON p_partkey = l_partkey
 WHERE p_brand = ':brand'
   AND p_container = ':container'
   AND l_quantity < (SELECT 0.2 * AVG(l_quantity)
                       FROM warehouse.lineitem
                      WHERE l_partkey = p_partkey)
