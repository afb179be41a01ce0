-- A broker's number of trades and commission are those of the completed trades in the broker's accounts.
SELECT b.b_id, t.ca_b_id AS trades_broker, b.b_num_trades, t.trades, b.b_comm_total, t.commission
  FROM brokerage.broker b
  FULL JOIN (SELECT a.ca_b_id, COUNT(*) AS trades, SUM(t.t_comm) AS commission
               FROM brokerage.trade t
               JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
              WHERE t.t_st_id = 'CMPT'
              GROUP BY a.ca_b_id) t ON t.ca_b_id = b.b_id
 WHERE b.b_id IS NULL
    OR b.b_num_trades <> COALESCE(t.trades, 0)
    OR b.b_comm_total <> COALESCE(t.commission, 0)
