-- Q6: forecasting revenue change
-- What would have come in without the discounts about that high, of one year's small lines.
SELECT SUM(l_extendedprice * l_discount) AS revenue
  FROM warehouse.lineitem
 WHERE l_shipdate >= DATE ':date'
   AND l_shipdate < DATE ':date' + INTERVAL '1' YEAR
   AND l_discount BETWEEN :discount - 0.01 AND :discount + 0.01
   AND l_quantity < :quantity
