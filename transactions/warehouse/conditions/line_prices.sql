-- A lineitem costs its quantity of what the part costs; what was shipped by 17 June 1995 is finished, and what was
-- received by then was accepted or returned.
SELECT l_orderkey, l_linenumber, l_quantity, p_retailprice, l_extendedprice, l_shipdate, l_linestatus, l_receiptdate,
       l_returnflag
  FROM warehouse.lineitem
  JOIN warehouse.part ON p_partkey = l_partkey
 WHERE l_extendedprice <> l_quantity * p_retailprice
    OR l_quantity NOT BETWEEN 1 AND 50
    OR l_discount NOT BETWEEN 0 AND 0.10
    OR l_tax NOT BETWEEN 0 AND 0.08
    OR l_linestatus <> CASE WHEN l_shipdate <= '1995-06-17' THEN 'F' ELSE 'O' END
    OR CASE WHEN l_returnflag = 'N' THEN 'N' ELSE 'R' END
       <> CASE WHEN l_receiptdate <= '1995-06-17' THEN 'R' ELSE 'N' END
    OR l_returnflag NOT IN ('A', 'N', 'R')
