-- Telephone numbers of customers and suppliers begin with the code of their nation, ten more than its key.
SELECT 'customer' AS who, c_custkey AS number, c_nationkey AS nation, c_phone AS phone
  FROM warehouse.customer
 WHERE SUBSTRING(c_phone, 1, 3) <> CONCAT(c_nationkey + 10, '-')
UNION ALL
SELECT 'supplier', s_suppkey, s_nationkey, s_phone
  FROM warehouse.supplier
 WHERE SUBSTRING(s_phone, 1, 3) <> CONCAT(s_nationkey + 10, '-')
