-- 60, 38 and 2 % of the accounts are open to one, two and three people; 20, 50 and 30 % have tax status 0, 1 and 2.
-- Allowed: five standard deviations of such a draw.
SELECT what, share, present, total
  FROM (SELECT expected.what, expected.share, SUM(kinds.accounts) AS total,
               SUM(CASE WHEN expected.what IN (CONCAT('tax status ', kinds.ca_tax_st),
                                               CONCAT('people ', kinds.people))
                        THEN kinds.accounts ELSE 0 END) AS present
          FROM (VALUES ('people 1', 0.60), ('people 2', 0.38), ('people 3', 0.02),
                       ('tax status 0', 0.20), ('tax status 1', 0.50),
                       ('tax status 2', 0.30)) AS expected (what, share)
         CROSS JOIN (SELECT a.ca_tax_st, p.people, COUNT(*) AS accounts
                       FROM brokerage.customer_account a
                       JOIN (SELECT ap_ca_id, COUNT(*) AS people
                               FROM brokerage.account_permission
                              GROUP BY ap_ca_id) p ON p.ap_ca_id = a.ca_id
                      GROUP BY a.ca_tax_st, p.people) AS kinds
         GROUP BY expected.what, expected.share) AS shares
 WHERE ABS(present - total * share) > 5 * SQRT(total * share * (1 - share))
