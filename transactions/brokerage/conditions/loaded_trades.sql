-- There are as many trades as the scale says, all of them completed at a price from 20 to 30 dollars and asked for at
-- one, and no request waits.
SELECT what, expected, present
  FROM (SELECT 'trades' AS what, :trades AS expected, COALESCE(SUM(CAST(1 AS bigint)), 0) AS present
          FROM brokerage.trade
        UNION ALL
        SELECT 'completed at such prices', :trades, COALESCE(SUM(CAST(1 AS bigint)), 0)
          FROM brokerage.trade
         WHERE t_st_id = 'CMPT'
           AND t_trade_price BETWEEN 20 AND 30
           AND t_bid_price BETWEEN 20 AND 30
        UNION ALL
        SELECT 'trade requests', 0, COUNT(*)
          FROM brokerage.trade_request) AS counted
 WHERE present <> expected
