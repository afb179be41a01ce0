-- Securities were last traded when the initial trade days and all their trades had ended: at one time, at a price from
-- 20 to 30 dollars, and nothing since. The market goes on later, so this holds for a database as it was loaded.
SELECT l.lt_s_symb, l.lt_dts, t.last_completed, l.lt_price, l.lt_open_price, l.lt_vol
  FROM brokerage.last_trade l
  LEFT JOIN (SELECT t_s_symb, MAX(t_dts) AS last_completed
               FROM brokerage.trade
              GROUP BY t_s_symb) t ON t.t_s_symb = l.lt_s_symb
 WHERE l.lt_dts < t.last_completed
    OR l.lt_dts <> (SELECT MAX(lt_dts) FROM brokerage.last_trade)
    OR l.lt_price NOT BETWEEN 20 AND 30
    OR l.lt_open_price NOT BETWEEN 20 AND 30
    OR l.lt_vol <> 0
