-- An account's balance is the sum of its cash transactions.
SELECT a.ca_id, c.t_ca_id AS paid_account, a.ca_bal, c.paid
  FROM brokerage.customer_account a
  FULL JOIN (SELECT t.t_ca_id, SUM(c.ct_amt) AS paid
               FROM brokerage.cash_transaction c
               JOIN brokerage.trade t ON t.t_id = c.ct_t_id
              GROUP BY t.t_ca_id) c ON c.t_ca_id = a.ca_id
 WHERE a.ca_id IS NULL
    OR a.ca_bal <> COALESCE(c.paid, 0)
