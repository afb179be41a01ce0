-- A trade that closes holdings takes the newest first where it is LIFO, else the oldest: of its account and security,
-- none is left open that was its turn before one that was taken. Machines whose clocks differ may mix up what is newest
-- later, so this holds for a database as it was loaded.
SELECT t.t_id, t.t_lifo, t.t_dts, taken.t_id AS taken, taken.t_dts AS taken_since, other.t_id AS left_open,
       other.t_dts AS left_since, other.closed
  FROM brokerage.holding_history h
  JOIN brokerage.trade t ON t.t_id = h.hh_t_id
  JOIN brokerage.trade taken ON taken.t_id = h.hh_h_t_id
  JOIN (SELECT b.t_id, b.t_ca_id, b.t_s_symb, b.t_dts, c.closed
          FROM brokerage.trade b
          JOIN brokerage.holding_history h ON h.hh_h_t_id = b.t_id AND h.hh_before_qty = 0
          LEFT JOIN (SELECT h.hh_h_t_id, t.t_dts AS closed
                       FROM brokerage.holding_history h
                       JOIN brokerage.trade t ON t.t_id = h.hh_t_id
                      WHERE h.hh_after_qty = 0) c ON c.hh_h_t_id = b.t_id) other
    ON other.t_ca_id = t.t_ca_id
   AND other.t_s_symb = t.t_s_symb
   AND other.t_dts < t.t_dts
   AND (other.closed IS NULL OR other.closed > t.t_dts)
   AND ((t.t_lifo = 'true' AND other.t_dts > taken.t_dts) OR (t.t_lifo = 'false' AND other.t_dts < taken.t_dts))
 WHERE h.hh_before_qty <> 0
