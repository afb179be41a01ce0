-- Consistency conditions: each query returns the offending rows, and `:name` is a number of the scale. In brackets:
-- `cheap` reads aggregates or small tables, others read large ones completely; `fresh` holds only until transactions
-- have run on the loaded database; `statistical` has a tolerance.

-- [rows] tables have the rows that the scale says
-- Tables have as many rows as the scale factor says, orders those of the refresh set under way more.
SELECT table_name, expected, present
  FROM (SELECT 'region' AS table_name, :region AS expected, COUNT(*) AS present FROM warehouse.region
        UNION ALL SELECT 'nation', :nation, COUNT(*) FROM warehouse.nation
        UNION ALL SELECT 'supplier', :supplier, COUNT(*) FROM warehouse.supplier
        UNION ALL SELECT 'part', :part, SUM(CAST(1 AS bigint)) FROM warehouse.part
        UNION ALL SELECT 'partsupp', :partsupp, SUM(CAST(1 AS bigint)) FROM warehouse.partsupp
        UNION ALL SELECT 'customer', :customer, SUM(CAST(1 AS bigint)) FROM warehouse.customer
        UNION ALL SELECT 'refresh', 1, COUNT(*) FROM warehouse.refresh
        UNION ALL SELECT 'orders', expected, present
                    FROM (SELECT SUM(:orders + CASE WHEN inserted = deleted THEN 0 ELSE :refreshed END) AS expected
                            FROM warehouse.refresh) AS due
                   CROSS JOIN (SELECT SUM(CAST(1 AS bigint)) AS present FROM warehouse.orders) AS there) AS counted
 WHERE present <> expected;

-- [loaded_lines, fresh] as many lineitems as the generator makes
-- There are as many lineitems as the generator makes at this scale factor.
SELECT 'lineitem' AS table_name, :lineitem AS expected, present
  FROM (SELECT SUM(CAST(1 AS bigint)) AS present FROM warehouse.lineitem) AS counted
 WHERE present <> :lineitem;

-- [loaded_keys, fresh] orders leave the keys for refresh sets free
-- Orders have the first eight of every 32 keys: the others are for refresh sets.
SELECT o_orderkey
  FROM warehouse.orders
 WHERE o_orderkey < 1
    OR o_orderkey % 32 > 7
    OR o_orderkey > 4 * CAST(:orders AS bigint);

-- [refresh, cheap] no refresh set is half done
-- What a refresh set inserts and what it deletes are done in turn: neither is left to be done.
SELECT refresh_set, inserted, deleted
  FROM warehouse.refresh
 WHERE refresh_set < 0
    OR CAST(inserted AS integer) <> 1
    OR CAST(deleted AS integer) <> 1;

-- [order_lines] orders have one to seven lineitems, and these their order
-- An order has one to seven lineitems, numbered through, and a lineitem has its order.
SELECT COALESCE(o_orderkey, l_orderkey) AS orderkey, lines, first_line, last_line
  FROM warehouse.orders
  FULL JOIN (SELECT l_orderkey,
                    COUNT(*) AS lines,
                    MIN(l_linenumber) AS first_line,
                    MAX(l_linenumber) AS last_line
               FROM warehouse.lineitem
              GROUP BY l_orderkey) AS l ON l_orderkey = o_orderkey
 WHERE o_orderkey IS NULL
    OR l_orderkey IS NULL
    OR first_line <> 1
    OR last_line <> lines
    OR lines > 7;

-- [order_totals] an order's total and status are its lineitems'
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
    OR o_orderstatus <> statuses;

-- [line_dates] lineitems are shipped and received after the order
-- A lineitem is shipped after it was ordered, received after that, and promised for 30 days after the order at least.
SELECT l_orderkey, l_linenumber, o_orderdate, l_shipdate, l_commitdate, l_receiptdate
  FROM warehouse.lineitem
  JOIN warehouse.orders ON o_orderkey = l_orderkey
 WHERE o_orderdate NOT BETWEEN '1992-01-01' AND '1998-08-02'
    OR l_shipdate <= o_orderdate
    OR l_receiptdate <= l_shipdate
    OR l_commitdate <= o_orderdate;

-- [line_prices] lineitems cost what their part costs
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
    OR l_returnflag NOT IN ('A', 'N', 'R');

-- [parts] parts cost what their key says, and have four suppliers
-- A part costs what follows from its key, and four suppliers have it.
SELECT p_partkey, p_retailprice, suppliers
  FROM warehouse.part
  LEFT JOIN (SELECT ps_partkey, COUNT(*) AS suppliers
               FROM warehouse.partsupp
              GROUP BY ps_partkey) AS ps ON ps_partkey = p_partkey
 WHERE suppliers IS NULL
    OR suppliers <> 4
    OR p_retailprice * 100 <> 90000 + (p_partkey / 10) % 20001 + 100 * (p_partkey % 1000);

-- [buyers] every third customer never orders
SELECT o_orderkey, o_custkey
  FROM warehouse.orders
 WHERE o_custkey % 3 = 0;

-- [phones, cheap] telephone numbers begin with the code of the nation
-- Telephone numbers of customers and suppliers begin with the code of their nation, ten more than its key.
SELECT 'customer' AS who, c_custkey AS number, c_nationkey AS nation, c_phone AS phone
  FROM warehouse.customer
 WHERE SUBSTRING(c_phone, 1, 3) <> CONCAT(c_nationkey + 10, '-')
UNION ALL
SELECT 'supplier', s_suppkey, s_nationkey, s_phone
  FROM warehouse.supplier
 WHERE SUBSTRING(s_phone, 1, 3) <> CONCAT(s_nationkey + 10, '-');

-- [regions, cheap] a region has five nations
SELECT r_regionkey, r_name, nations
  FROM warehouse.region
  LEFT JOIN (SELECT n_regionkey, COUNT(*) AS nations
               FROM warehouse.nation
              GROUP BY n_regionkey) AS n ON n_regionkey = r_regionkey
 WHERE nations IS NULL
    OR nations <> 5;
