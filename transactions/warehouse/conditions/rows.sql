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
 WHERE present <> expected
