-- What a trade costs follows from the price list: the charge from its type and the customer's tier; the commission, a
-- percentage of its value with half a cent rounded up, from the exchange and the number of shares as well. The
-- commission is known when a trade is completed.
SELECT t.t_id, t.t_st_id, t.t_chrg, g.ch_chrg, t.t_comm,
       ROUND(t.t_trade_price * t.t_qty * r.cr_rate * 0.01, 2) AS commission
  FROM brokerage.trade t
  LEFT JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
  LEFT JOIN brokerage.customer c ON c.c_id = a.ca_c_id
  LEFT JOIN brokerage.security s ON s.s_symb = t.t_s_symb
  LEFT JOIN brokerage.charge g ON g.ch_tt_id = t.t_tt_id AND g.ch_c_tier = c.c_tier
  LEFT JOIN brokerage.commission_rate r ON r.cr_tt_id = t.t_tt_id
                                       AND r.cr_c_tier = c.c_tier
                                       AND r.cr_ex_id = s.s_ex_id
                                       AND t.t_qty BETWEEN r.cr_from_qty AND r.cr_to_qty
 WHERE g.ch_tt_id IS NULL
    OR r.cr_tt_id IS NULL
    OR t.t_chrg <> g.ch_chrg
    OR (t.t_st_id = 'CMPT' AND t.t_comm <> ROUND(t.t_trade_price * t.t_qty * r.cr_rate * 0.01, 2))
