-- A holding is what is left of the completed trade that began it: of its account, security, price, time and sign.
SELECT h.h_t_id, t.t_st_id, t.t_tt_id, h.h_ca_id, t.t_ca_id, h.h_s_symb, t.t_s_symb, h.h_price, t.t_trade_price,
       h.h_dts, t.t_dts, h.h_qty, t.t_qty
  FROM brokerage.holding h
  LEFT JOIN brokerage.trade t ON t.t_id = h.h_t_id
  LEFT JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
 WHERE y.tt_id IS NULL
    OR t.t_trade_price IS NULL
    OR t.t_st_id <> 'CMPT'
    OR h.h_ca_id <> t.t_ca_id
    OR h.h_s_symb <> t.t_s_symb
    OR h.h_price <> t.t_trade_price
    OR h.h_dts <> t.t_dts
    OR ABS(h.h_qty) > t.t_qty
    OR CASE WHEN h.h_qty < 0 THEN 1 ELSE 0 END <> CASE WHEN y.tt_is_sell = 'true' THEN 1 ELSE 0 END
