-- A security knows the highest and the lowest price of the last year of its market (261 working days, or as many as
-- there are) and the first day of each; its yield is the dividend in percent of what it closed at in the end, cut off
-- after two digits.
SELECT s.s_symb, s.s_52wk_high, y.high, s.s_52wk_high_date, y.high_date, s.s_52wk_low, y.low, s.s_52wk_low_date,
       y.low_date, s.s_dividend, s.s_yield, y.close_price
  FROM brokerage.security s
  LEFT JOIN (SELECT d.dm_s_symb,
                    MAX(d.dm_high) AS high,
                    MIN(d.dm_low) AS low,
                    MIN(CASE WHEN d.dm_high = s.s_52wk_high THEN d.dm_date END) AS high_date,
                    MIN(CASE WHEN d.dm_low = s.s_52wk_low THEN d.dm_date END) AS low_date,
                    MAX(CASE WHEN d.dm_date = '2004-12-31' THEN d.dm_close END) AS close_price
               FROM brokerage.daily_market d
               JOIN brokerage.security s ON s.s_symb = d.dm_s_symb
              WHERE d.dm_date >= '2004-01-02'
              GROUP BY d.dm_s_symb) y ON y.dm_s_symb = s.s_symb
 WHERE y.close_price IS NULL
    OR s.s_52wk_high <> y.high
    OR s.s_52wk_high_date <> y.high_date
    OR s.s_52wk_low <> y.low
    OR s.s_52wk_low_date <> y.low_date
    OR s.s_yield * y.close_price > 100 * s.s_dividend
    OR (s.s_yield + 0.01) * y.close_price <= 100 * s.s_dividend
