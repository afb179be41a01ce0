-- A watch list has 50 to 150 securities, or fewer in a small database: how many follows from the customer's number.
SELECT COALESCE(l.wl_id, i.wi_wl_id) AS watch_list, i.items
  FROM brokerage.watch_list l
  FULL JOIN (SELECT wi_wl_id, COUNT(*) AS items
               FROM brokerage.watch_item
              GROUP BY wi_wl_id) i ON i.wi_wl_id = l.wl_id
 WHERE l.wl_id IS NULL
    OR i.wi_wl_id IS NULL
    OR i.items <> :fewest_watched
                   + (l.wl_c_id - CAST(4300000001 AS bigint)) * 103 % (:most_watched - :fewest_watched + 1)
