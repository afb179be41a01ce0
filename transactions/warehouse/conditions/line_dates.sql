-- A lineitem is shipped after it was ordered, received after that, and promised for 30 days after the order at least.
SELECT l_orderkey, l_linenumber, o_orderdate, l_shipdate, l_commitdate, l_receiptdate
  FROM warehouse.lineitem
  JOIN warehouse.orders ON o_orderkey = l_orderkey
 WHERE o_orderdate NOT BETWEEN '1992-01-01' AND '1998-08-02'
    OR l_shipdate <= o_orderdate
    OR l_receiptdate <= l_shipdate
    OR l_commitdate <= o_orderdate
