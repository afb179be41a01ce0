-- What is traded from Monday to Friday is settled two working days later; nothing is traded on other days. For this,
-- days are numbered through (in years that begin in March), so that the numbers of Mondays are multiples of seven.
-- Trading may go on on any day later, so this holds for a database as it was loaded.
SELECT traded, due, trades, MIN(day_number) % 7 AS weekday, MAX(day_number) - MIN(day_number) AS days_between
  FROM (SELECT traded, due, trades,
               1461 * (in_year + (in_month - 14) / 12) / 4
               + 367 * (in_month - 2 - (in_month - 14) / 12 * 12) / 12 + on_day + 5 AS day_number
          FROM (SELECT p.traded, p.due, p.trades,
                       CAST(SUBSTRING(CONCAT(p.traded, p.due), w.begins, 4) AS int) AS in_year,
                       CAST(SUBSTRING(CONCAT(p.traded, p.due), w.begins + 5, 2) AS int) AS in_month,
                       CAST(SUBSTRING(CONCAT(p.traded, p.due), w.begins + 8, 2) AS int) AS on_day
                  FROM (SELECT CAST(CAST(t.t_dts AS date) AS varchar(10)) AS traded,
                               CAST(s.se_cash_due_date AS varchar(10)) AS due,
                               COUNT(*) AS trades
                          FROM brokerage.trade t
                          JOIN brokerage.settlement s ON s.se_t_id = t.t_id
                         GROUP BY CAST(t.t_dts AS date), s.se_cash_due_date) AS p
                 CROSS JOIN (VALUES (1), (11)) AS w (begins)) AS parts) AS numbered
 GROUP BY traded, due, trades
HAVING MIN(day_number) % 7 > 4
    OR MAX(day_number) - MIN(day_number) <> CASE WHEN MIN(day_number) % 7 < 3 THEN 2 ELSE 4 END
