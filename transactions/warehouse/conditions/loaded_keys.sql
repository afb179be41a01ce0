-- Orders have the first eight of every 32 keys: the others are for refresh sets.
SELECT o_orderkey
  FROM warehouse.orders
 WHERE o_orderkey < 1
    OR o_orderkey % 32 > 7
    OR o_orderkey > 4 * CAST(:orders AS bigint)
