-- There are as many trades as the scale says, all of them completed, and no request waits.
SELECT what, expected, present
  FROM (SELECT 'trades' AS what, :trades AS expected, COALESCE(SUM(CAST(1 AS bigint)), 0) AS present
          FROM brokerage.trade
        UNION ALL
        SELECT 'completed trades', :trades, COALESCE(SUM(CAST(1 AS bigint)), 0)
          FROM brokerage.trade
         WHERE t_st_id = 'CMPT'
        UNION ALL
        SELECT 'trade requests', 0, COUNT(*)
          FROM brokerage.trade_request) AS counted
 WHERE present <> expected
