-- A trade that closes holdings takes the newest first where it is LIFO, else the oldest: of its account and security,
-- none is left open that was its turn before one that was taken. Machines whose clocks differ may mix up what is newest
-- later, so this holds for a database as it was loaded.
-- Each trade beside all that was open would take the square of the trades. So the changes are replayed first: a new
-- holding gets the slot behind the last one, a trade that is LIFO takes the last slot, another the first. There it must
-- find the holding that it changes, as the change before left it. Where one does not, all of them are compared.
SELECT t.t_id, t.t_lifo, t.t_dts, taken.t_id AS taken, taken.t_dts AS taken_since, other.t_id AS left_open,
       other.t_dts AS left_since, other.closed
  FROM (SELECT DISTINCT account, symbol
          FROM (SELECT slots.*,
                       LAG(hh_h_t_id) OVER (PARTITION BY account, symbol, slot ORDER BY turn) AS last_changed,
                       LAG(hh_after_qty) OVER (PARTITION BY account, symbol, slot ORDER BY turn) AS last_qty
                  FROM (SELECT ends.*,
                               CASE WHEN hh_before_qty <> 0 AND lifo = 0 THEN gone + 1 - closes
                                    ELSE last_one + lifo * closes END AS slot
                          FROM (SELECT changes.*,
                                       ROW_NUMBER() OVER (PARTITION BY account, symbol
                                                          ORDER BY t_dts, hh_t_id, begins, oldest, newest DESC) AS turn,
                                       SUM(begins - lifo * closes)
                                           OVER (PARTITION BY account, symbol
                                                 ORDER BY t_dts, hh_t_id, begins, oldest, newest DESC
                                                 ROWS UNBOUNDED PRECEDING) AS last_one,
                                       SUM((1 - lifo) * closes)
                                           OVER (PARTITION BY account, symbol
                                                 ORDER BY t_dts, hh_t_id, begins, oldest, newest DESC
                                                 ROWS UNBOUNDED PRECEDING) AS gone
                                  FROM (SELECT t.t_ca_id AS account, t.t_s_symb AS symbol, t.t_dts,
                                               h.hh_h_t_id, h.hh_t_id, h.hh_before_qty, h.hh_after_qty,
                                               CAST(t.t_lifo AS int) AS lifo,
                                               CASE WHEN t.t_lifo = 'false' THEN taken.t_dts END AS oldest,
                                               CASE WHEN t.t_lifo = 'true' THEN taken.t_dts END AS newest,
                                               CASE WHEN h.hh_before_qty = 0 THEN 1 ELSE 0 END AS begins,
                                               CASE WHEN h.hh_after_qty = 0 THEN 1 ELSE 0 END AS closes
                                          FROM brokerage.holding_history h
                                          JOIN brokerage.trade t ON t.t_id = h.hh_t_id
                                          JOIN brokerage.trade taken ON taken.t_id = h.hh_h_t_id) AS changes) AS ends
                       ) AS slots) AS replayed
         WHERE (hh_before_qty = 0 AND hh_h_t_id <> hh_t_id)
            OR (hh_before_qty <> 0
                AND (last_changed IS NULL OR last_changed <> hh_h_t_id OR last_qty <> hh_before_qty))) AS odd
  JOIN brokerage.trade t ON t.t_ca_id = odd.account AND t.t_s_symb = odd.symbol
  JOIN brokerage.holding_history h ON h.hh_t_id = t.t_id
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
