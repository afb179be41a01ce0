-- A completed trade changes holdings by as many shares as were traded, and no other trade changes any.
SELECT COALESCE(t.t_id, h.hh_t_id) AS trade, t.t_tt_id, t.to_change, h.changed
  FROM (SELECT t.t_id, t.t_tt_id, CASE WHEN y.tt_is_sell = 'true' THEN -t.t_qty ELSE t.t_qty END AS to_change
          FROM brokerage.trade t
          JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
         WHERE t.t_st_id = 'CMPT') t
  FULL JOIN (SELECT hh_t_id, SUM(CAST(hh_after_qty - hh_before_qty AS bigint)) AS changed
               FROM brokerage.holding_history
              GROUP BY hh_t_id) h ON h.hh_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR h.hh_t_id IS NULL
    OR h.changed <> t.to_change
