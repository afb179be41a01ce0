-- A customer has one watch list and two tax rates.
SELECT c.c_id, w.lists, x.rates
  FROM brokerage.customer c
  LEFT JOIN (SELECT wl_c_id, COUNT(*) AS lists
               FROM brokerage.watch_list
              GROUP BY wl_c_id) w ON w.wl_c_id = c.c_id
  LEFT JOIN (SELECT cx_c_id, COUNT(*) AS rates
               FROM brokerage.customer_taxrate
              GROUP BY cx_c_id) x ON x.cx_c_id = c.c_id
 WHERE COALESCE(w.lists, 0) <> 1
    OR COALESCE(x.rates, 0) <> 2
