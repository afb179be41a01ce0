-- Each address is that of one customer, one company or one exchange.
SELECT COALESCE(a.ad_id, o.ad_id) AS address, o.owners
  FROM brokerage.address a
  FULL JOIN (SELECT ad_id, COUNT(*) AS owners
               FROM (SELECT c_ad_id AS ad_id FROM brokerage.customer
                     UNION ALL SELECT co_ad_id FROM brokerage.company
                     UNION ALL SELECT ex_ad_id FROM brokerage.exchange) AS each_owner
              GROUP BY ad_id) o ON o.ad_id = a.ad_id
 WHERE a.ad_id IS NULL
    OR o.ad_id IS NULL
    OR o.owners <> 1
