-- Trades are numbered in the order in which they were placed, inside each load unit, and no state of a trade begins
-- before the one it follows. Machines whose clocks differ may mix that up later, so this holds for a database as it
-- was loaded.
SELECT th_t_id, placed_before, placed, pending, submitted, ended
  FROM (SELECT th_t_id,
               LAG(MIN(th_dts)) OVER (PARTITION BY (th_t_id - CAST(200000000000001 AS bigint)) / :unit_trade_ids
                                      ORDER BY th_t_id) AS placed_before,
               MIN(th_dts) AS placed,
               MAX(CASE WHEN th_st_id = 'PNDG' THEN th_dts END) AS pending,
               MAX(CASE WHEN th_st_id = 'SBMT' THEN th_dts END) AS submitted,
               MAX(CASE WHEN th_st_id IN ('CMPT', 'CNCL') THEN th_dts END) AS ended
          FROM brokerage.trade_history
         GROUP BY th_t_id) AS histories
 WHERE placed < placed_before
    OR pending > submitted
    OR submitted > ended
