-- A trade is taxed on what it earned by the holdings that it closed (sold for, less bought for), at the sum of the
-- customer's rates, with half a cent rounded up; not where it earned nothing, nor where the account is not taxed.
-- Customers get other rates later, so this holds for a database as it was loaded.
SELECT t.t_id, t.t_tax, a.ca_tax_st, e.earned, r.rate
  FROM brokerage.trade t
  JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
  LEFT JOIN (SELECT c.cx_c_id, CAST(SUM(x.tx_rate) AS decimal(6, 5)) AS rate
               FROM brokerage.customer_taxrate c
               JOIN brokerage.taxrate x ON x.tx_id = c.cx_tx_id
              GROUP BY c.cx_c_id) r ON r.cx_c_id = a.ca_c_id
  LEFT JOIN (SELECT h.hh_t_id,
                    CAST(SUM((h.hh_before_qty - h.hh_after_qty) * (o.t_trade_price - b.t_trade_price))
                         AS decimal(12, 2)) AS earned
               FROM brokerage.holding_history h
               JOIN brokerage.trade b ON b.t_id = h.hh_h_t_id
               JOIN brokerage.trade o ON o.t_id = h.hh_t_id
              WHERE h.hh_h_t_id <> h.hh_t_id
              GROUP BY h.hh_t_id) e ON e.hh_t_id = t.t_id
 WHERE r.rate IS NULL
    OR t.t_tax <> CASE WHEN a.ca_tax_st <> 0 AND e.earned > 0 THEN ROUND(e.earned * r.rate, 2) ELSE 0 END
