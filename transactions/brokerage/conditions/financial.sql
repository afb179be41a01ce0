-- A company's figures are those of the quarters of 2000 to 2004; each begins on its first day, which is moved by one
-- and back later. What is earned follows from revenue and margin, and per share from the shares, in cents that are cut
-- off downwards; what is in stock, owned and owed is in proportion.
SELECT f.fi_co_id, f.fi_year, f.fi_qtr, f.fi_qtr_start_date, f.fi_revenue, f.fi_margin, f.fi_net_earn,
       f.fi_out_basic, f.fi_basic_eps, f.fi_out_dilut, f.fi_dilut_eps, f.fi_inventory, f.fi_assets, f.fi_liability
  FROM brokerage.financial f
  LEFT JOIN (VALUES (1, '-01-0'), (2, '-04-0'), (3, '-07-0'), (4, '-10-0')) AS q (qtr, begins) ON q.qtr = f.fi_qtr
 WHERE q.qtr IS NULL
    OR f.fi_year NOT BETWEEN 2000 AND 2004
    OR CAST(f.fi_qtr_start_date AS varchar(10)) NOT IN (CONCAT(f.fi_year, q.begins, '1'),
                                                        CONCAT(f.fi_year, q.begins, '2'))
    OR f.fi_revenue NOT BETWEEN 1000000 AND 1000000000
    OR f.fi_margin NOT BETWEEN -5 AND 25
    OR f.fi_net_earn * 100 > f.fi_revenue * f.fi_margin
    OR (f.fi_net_earn + 0.01) * 100 <= f.fi_revenue * f.fi_margin
    OR f.fi_out_dilut <> f.fi_out_basic + f.fi_out_basic / 10
    OR f.fi_basic_eps * f.fi_out_basic > f.fi_net_earn
    OR (f.fi_basic_eps + 0.01) * f.fi_out_basic <= f.fi_net_earn
    OR f.fi_dilut_eps * f.fi_out_dilut > f.fi_net_earn
    OR (f.fi_dilut_eps + 0.01) * f.fi_out_dilut <= f.fi_net_earn
    OR f.fi_inventory NOT BETWEEN 0 AND 0.29 * f.fi_revenue
    OR f.fi_assets NOT BETWEEN f.fi_revenue AND 4.99 * f.fi_revenue
    OR f.fi_liability NOT BETWEEN 0.20 * f.fi_assets - 0.01 AND 0.79 * f.fi_assets
