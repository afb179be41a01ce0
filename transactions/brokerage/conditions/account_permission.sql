-- One to three people may trade in an account; its owner is one of them, under the own name.
SELECT COALESCE(a.ca_id, p.ap_ca_id) AS account, p.people, p.owners
  FROM brokerage.customer_account a
  FULL JOIN (SELECT p.ap_ca_id, COUNT(*) AS people, COUNT(c.c_id) AS owners
               FROM brokerage.account_permission p
               LEFT JOIN brokerage.customer_account a ON a.ca_id = p.ap_ca_id
               LEFT JOIN brokerage.customer c ON c.c_id = a.ca_c_id
                                             AND c.c_tax_id = p.ap_tax_id
                                             AND c.c_l_name = p.ap_l_name
                                             AND c.c_f_name = p.ap_f_name
              GROUP BY p.ap_ca_id) p ON p.ap_ca_id = a.ca_id
 WHERE a.ca_id IS NULL
    OR p.ap_ca_id IS NULL
    OR p.people > 3
    OR p.owners <> 1
