-- Trades are ordered by the owner of the account, and what is paid for is named after what was traded. Others order and
-- other names are given later, so this holds for a database as it was loaded.
SELECT t.t_id, t.t_exec_name, c.c_f_name, c.c_l_name, p.ct_name, y.tt_name, t.t_qty, s.s_name
  FROM brokerage.trade t
  JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
  JOIN brokerage.security s ON s.s_symb = t.t_s_symb
  JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
  JOIN brokerage.customer c ON c.c_id = a.ca_c_id
  LEFT JOIN brokerage.cash_transaction p ON p.ct_t_id = t.t_id
 WHERE t.t_exec_name <> CONCAT(c.c_f_name, ' ', c.c_l_name)
    OR p.ct_name <> CONCAT(y.tt_name, ' ', t.t_qty, ' shares of ', s.s_name)
