-- The history of a holding begins with the trade that it is named after, at 0, and leads to what is left of it: each
-- change begins with what the one before has left. So the changes add up to what is left, and their squares to its
-- square, which two wrong quantities that cancel each other out would not.
SELECT COALESCE(h.h_t_id, c.hh_h_t_id) AS holding, h.h_qty, c.left_over, c.left_over_squared, c.beginnings
  FROM brokerage.holding h
  FULL JOIN (SELECT hh_h_t_id,
                    SUM(CAST(hh_after_qty AS bigint) - hh_before_qty) AS left_over,
                    SUM(CAST(hh_after_qty AS bigint) * hh_after_qty
                        - CAST(hh_before_qty AS bigint) * hh_before_qty) AS left_over_squared,
                    SUM(CASE WHEN hh_t_id = hh_h_t_id AND hh_before_qty = 0 THEN 1 ELSE 0 END) AS beginnings
               FROM brokerage.holding_history
              GROUP BY hh_h_t_id) c ON c.hh_h_t_id = h.h_t_id
 WHERE c.hh_h_t_id IS NULL
    OR c.beginnings <> 1
    OR c.left_over <> COALESCE(h.h_qty, 0)
    OR c.left_over_squared <> COALESCE(CAST(h.h_qty AS bigint) * h.h_qty, 0)
