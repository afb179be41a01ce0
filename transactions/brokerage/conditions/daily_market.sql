-- Every security has the market of all its weeks, five days each, and closes at a price between the lowest and the
-- highest of the day.
SELECT COALESCE(s.s_symb, d.dm_s_symb) AS symbol, CAST(NULL AS date) AS day, d.days AS present, d.wrong_prices
  FROM brokerage.security s
  FULL JOIN (SELECT dm_s_symb, COUNT(*) AS days,
                    SUM(CASE WHEN dm_close BETWEEN dm_low AND dm_high THEN 0 ELSE 1 END) AS wrong_prices
               FROM brokerage.daily_market
              GROUP BY dm_s_symb) d ON d.dm_s_symb = s.s_symb
 WHERE s.s_symb IS NULL
    OR d.dm_s_symb IS NULL
    OR d.days <> 5 * :market_weeks
    OR d.wrong_prices <> 0
UNION ALL
SELECT CAST(NULL AS varchar(15)), dm_date, COUNT(*), CAST(NULL AS int)
  FROM brokerage.daily_market
 GROUP BY dm_date
HAVING COUNT(*) <> :securities
