-- A trade changes one holding on the first day, and 1.34 on average when there are many. Allowed: 1 to 1.36.
SELECT trades, changes
  FROM (SELECT COALESCE(SUM(CAST(1 AS bigint)), 0) AS trades FROM brokerage.trade WHERE t_st_id = 'CMPT') AS t
 CROSS JOIN (SELECT COALESCE(SUM(CAST(1 AS bigint)), 0) AS changes FROM brokerage.holding_history) AS h
 WHERE changes NOT BETWEEN trades AND 1.36 * trades
