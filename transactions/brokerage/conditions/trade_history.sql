-- The history of a trade has one row for each state that it has been in: a limit order waits first (PNDG), a market
-- order does not; what is not waiting was submitted (SBMT); in the end it is completed (CMPT) or canceled (CNCL).
-- The time of the trade is that of its completion.
SELECT COALESCE(t.t_id, h.th_t_id) AS trade, t.t_tt_id, t.t_st_id, h.pending, h.submitted, h.completed, h.canceled,
       t.t_dts, h.completed_at
  FROM (SELECT t.t_id, t.t_tt_id, t.t_st_id, t.t_dts, y.tt_is_mrkt
          FROM brokerage.trade t
          LEFT JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id) t
  FULL JOIN (SELECT th_t_id,
                    COUNT(*) AS states,
                    SUM(CASE WHEN th_st_id = 'PNDG' THEN 1 ELSE 0 END) AS pending,
                    SUM(CASE WHEN th_st_id = 'SBMT' THEN 1 ELSE 0 END) AS submitted,
                    SUM(CASE WHEN th_st_id = 'CMPT' THEN 1 ELSE 0 END) AS completed,
                    SUM(CASE WHEN th_st_id = 'CNCL' THEN 1 ELSE 0 END) AS canceled,
                    MAX(CASE WHEN th_st_id = 'CMPT' THEN th_dts END) AS completed_at
               FROM brokerage.trade_history
              GROUP BY th_t_id) h ON h.th_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR h.th_t_id IS NULL
    OR t.tt_is_mrkt IS NULL
    OR h.pending <> CASE WHEN t.tt_is_mrkt = 'true' THEN 0 ELSE 1 END
    OR h.submitted <> CASE WHEN t.t_st_id = 'PNDG' THEN 0 ELSE 1 END
    OR h.completed <> CASE WHEN t.t_st_id = 'CMPT' THEN 1 ELSE 0 END
    OR h.canceled <> CASE WHEN t.t_st_id = 'CNCL' THEN 1 ELSE 0 END
    OR h.states <> h.pending + h.submitted + h.completed + h.canceled
    OR h.completed_at <> t.t_dts
