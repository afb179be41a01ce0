-- A holding begins with the trade it is named after: above 0 with a purchase, below with a sale, by no more than the
-- shares of that trade. Later trades of the same account and security bring it nearer to 0, and not beyond.
SELECT h.hh_h_t_id, h.hh_t_id, h.hh_before_qty, h.hh_after_qty, b.its_sign, b.t_qty, b.t_ca_id AS account,
       c.t_ca_id AS account_of_change, b.t_s_symb AS symbol, c.t_s_symb AS symbol_of_change
  FROM brokerage.holding_history h
  LEFT JOIN (SELECT t.t_id, t.t_ca_id, t.t_s_symb, t.t_qty,
                    CASE WHEN y.tt_is_sell = 'true' THEN -1 ELSE 1 END AS its_sign
               FROM brokerage.trade t
               JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id) b ON b.t_id = h.hh_h_t_id
  LEFT JOIN brokerage.trade c ON c.t_id = h.hh_t_id
 WHERE b.t_id IS NULL
    OR c.t_id IS NULL
    OR c.t_ca_id <> b.t_ca_id
    OR c.t_s_symb <> b.t_s_symb
    OR CASE WHEN h.hh_t_id = h.hh_h_t_id
            THEN CASE WHEN h.hh_before_qty = 0
                       AND h.hh_after_qty * b.its_sign BETWEEN 1 AND b.t_qty THEN 1 ELSE 0 END
            ELSE CASE WHEN h.hh_before_qty * b.its_sign BETWEEN 1 AND b.t_qty
                       AND h.hh_after_qty * b.its_sign BETWEEN 0 AND h.hh_before_qty * b.its_sign - 1
                      THEN 1 ELSE 0 END
       END = 0
