-- What an account has of a security is the sum of its holdings, and these are the sum of all that trades changed.
SELECT COALESCE(s.hs_ca_id, h.h_ca_id, c.t_ca_id) AS account,
       COALESCE(s.hs_s_symb, h.h_s_symb, c.t_s_symb) AS symbol,
       s.hs_qty, h.held, c.changed
  FROM brokerage.holding_summary s
  FULL JOIN (SELECT h_ca_id, h_s_symb, SUM(CAST(h_qty AS bigint)) AS held
               FROM brokerage.holding
              GROUP BY h_ca_id, h_s_symb) h ON h.h_ca_id = s.hs_ca_id AND h.h_s_symb = s.hs_s_symb
  FULL JOIN (SELECT t.t_ca_id, t.t_s_symb, SUM(CAST(hh.hh_after_qty - hh.hh_before_qty AS bigint)) AS changed
               FROM brokerage.holding_history hh
               JOIN brokerage.trade t ON t.t_id = hh.hh_t_id
              GROUP BY t.t_ca_id, t.t_s_symb) c ON c.t_ca_id = s.hs_ca_id AND c.t_s_symb = s.hs_s_symb
 WHERE COALESCE(s.hs_qty, 0) <> COALESCE(h.held, 0)
    OR COALESCE(s.hs_qty, 0) <> COALESCE(c.changed, 0)
    OR s.hs_qty = 0
