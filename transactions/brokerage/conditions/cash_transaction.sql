-- A completed trade that is paid in cash, and no other, has a cash transaction: of the settled amount, at its time.
SELECT COALESCE(t.t_id, c.ct_t_id) AS trade, t.se_amt, c.ct_amt, t.t_dts, c.ct_dts
  FROM (SELECT t.t_id, t.t_dts, s.se_amt
          FROM brokerage.trade t
          LEFT JOIN brokerage.settlement s ON s.se_t_id = t.t_id
         WHERE t.t_st_id = 'CMPT'
           AND t.t_is_cash = 'true') t
  FULL JOIN brokerage.cash_transaction c ON c.ct_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR c.ct_t_id IS NULL
    OR t.se_amt IS NULL
    OR c.ct_amt <> t.se_amt
    OR c.ct_dts <> t.t_dts
