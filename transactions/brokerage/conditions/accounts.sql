-- A customer of tier 1, 2 or 3 has 1 to 4, 2 to 8 or 5 to 10 accounts; these are numbered through after the customer's
-- number, and their brokers, ten to 1,000 customers, are of the same load unit.
SELECT c.c_id, c.c_tier, a.accounts, a.of_others, a.with_far_brokers
  FROM brokerage.customer c
  FULL JOIN (SELECT ca_c_id,
                    COUNT(*) AS accounts,
                    SUM(CASE WHEN (ca_id - 1) / 10 + 1 <> ca_c_id THEN 1 ELSE 0 END) AS of_others,
                    SUM(CASE WHEN (ca_b_id - CAST(4300000001 AS bigint)) / 10
                                  <> (ca_c_id - CAST(4300000001 AS bigint)) / 1000
                             THEN 1 ELSE 0 END) AS with_far_brokers
               FROM brokerage.customer_account
              GROUP BY ca_c_id) a ON a.ca_c_id = c.c_id
 WHERE c.c_id IS NULL
    OR a.ca_c_id IS NULL
    OR a.accounts NOT BETWEEN CASE c.c_tier WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 5 END
                          AND CASE c.c_tier WHEN 1 THEN 4 WHEN 2 THEN 8 ELSE 10 END
    OR a.of_others <> 0
    OR a.with_far_brokers <> 0
