-- Every third customer never orders.
SELECT o_orderkey, o_custkey
  FROM warehouse.orders
 WHERE o_custkey % 3 = 0
