-- Completed trades, and no others, have a price and are settled: what was sold brings its value, what was bought costs
-- it; charge and commission go off, and the tax where the account is taxed at the source. The settlement says whether
-- it is paid in cash or on margin, each in one of two words.
SELECT COALESCE(t.t_id, s.se_t_id) AS trade, t.t_st_id, t.t_trade_price, t.amount, s.se_amt,
       t.t_is_cash, s.se_cash_type, t.t_dts, s.se_cash_due_date
  FROM (SELECT t.t_id, t.t_st_id, t.t_trade_price, t.t_is_cash, t.t_dts,
               CASE WHEN y.tt_is_sell = 'true' THEN 1 ELSE -1 END * t.t_qty * t.t_trade_price
               - t.t_chrg - t.t_comm - CASE WHEN a.ca_tax_st = 1 THEN t.t_tax ELSE 0 END AS amount
          FROM brokerage.trade t
          JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
          JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id) t
  FULL JOIN brokerage.settlement s ON s.se_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR CASE WHEN t.t_st_id = 'CMPT' THEN 1 ELSE 0 END <> CASE WHEN t.t_trade_price IS NULL THEN 0 ELSE 1 END
    OR CASE WHEN t.t_st_id = 'CMPT' THEN 1 ELSE 0 END <> CASE WHEN s.se_t_id IS NULL THEN 0 ELSE 1 END
    OR s.se_amt <> t.amount
    OR s.se_cash_due_date <= CAST(t.t_dts AS date)
    OR (t.t_is_cash = 'true' AND s.se_cash_type NOT IN ('Cash Account', 'Cash'))
    OR (t.t_is_cash = 'false' AND s.se_cash_type NOT IN ('Margin', 'Margin Account'))
