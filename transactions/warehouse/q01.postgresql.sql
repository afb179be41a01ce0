-- Q1: pricing summary report
-- What was billed, shipped and returned of all that had been shipped some days before the end.
SELECT l_returnflag,
       l_linestatus,
       SUM(l_quantity) AS sum_qty,
       SUM(l_extendedprice) AS sum_base_price,
       SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       AVG(l_quantity) AS avg_qty,
       AVG(l_extendedprice) AS avg_price,
       AVG(l_discount) AS avg_disc,
       COUNT(*) AS count_order
  FROM warehouse.lineitem
 WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL ':delta' DAY
 GROUP BY l_returnflag, l_linestatus
 ORDER BY l_returnflag, l_linestatus
