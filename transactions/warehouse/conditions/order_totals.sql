-- An order's total is that of its lineitems, each rounded down to the cent after discount and again after tax, and its
-- status is theirs where they agree.
SELECT o_orderkey, o_totalprice, total, o_orderstatus, statuses
  FROM warehouse.orders
  JOIN (SELECT l_orderkey,
               SUM(FLOOR(FLOOR(l_extendedprice * 100 * (1 - l_discount)) * (1 + l_tax))) / 100 AS total,
               CASE WHEN MIN(l_linestatus) = MAX(l_linestatus) THEN MIN(l_linestatus) ELSE CAST('P' AS CHAR(1)) END AS statuses
          FROM warehouse.lineitem
         GROUP BY l_orderkey) AS l ON l_orderkey = o_orderkey
 WHERE o_totalprice <> total
    OR o_orderstatus <> statuses
