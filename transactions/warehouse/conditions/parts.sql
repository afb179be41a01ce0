-- A part costs what follows from its key, and four suppliers have it.
SELECT p_partkey, p_retailprice, suppliers
  FROM warehouse.part
  LEFT JOIN (SELECT ps_partkey, COUNT(*) AS suppliers
               FROM warehouse.partsupp
              GROUP BY ps_partkey) AS ps ON ps_partkey = p_partkey
 WHERE suppliers IS NULL
    OR suppliers <> 4
    OR p_retailprice * 100 <> 90000 + (p_partkey / 10) % 20001 + 100 * (p_partkey % 1000)
