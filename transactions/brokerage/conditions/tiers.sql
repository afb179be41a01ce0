-- Each load unit (1,000 customers) has 200, 600 and 200 customers in its tiers, with 500, 3,000 and 1,500 accounts.
SELECT load_unit, c_tier, customers, accounts
  FROM (SELECT (c.c_id - CAST(4300000001 AS bigint)) / 1000 AS load_unit, c.c_tier,
               COUNT(*) AS customers, SUM(a.accounts) AS accounts
          FROM brokerage.customer c
          LEFT JOIN (SELECT ca_c_id, COUNT(*) AS accounts
                       FROM brokerage.customer_account
                      GROUP BY ca_c_id) a ON a.ca_c_id = c.c_id
         GROUP BY (c.c_id - CAST(4300000001 AS bigint)) / 1000, c.c_tier) AS tiers
 WHERE load_unit NOT BETWEEN 0 AND :units - 1
    OR customers <> CASE c_tier WHEN 1 THEN 200 WHEN 2 THEN 600 ELSE 200 END
    OR COALESCE(accounts, 0) <> CASE c_tier WHEN 1 THEN 500 WHEN 2 THEN 3000 ELSE 1500 END
