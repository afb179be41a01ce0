-- States and types of trades are the five each that the transactions know by their identifiers.
SELECT COALESCE(known.id, present.id) AS id, known.name AS known_name, present.name,
       known.is_sell AS known_is_sell, present.is_sell, known.is_market AS known_is_market, present.is_market
  FROM (VALUES ('ACTV', 'Active', 0, 0),
               ('CMPT', 'Completed', 0, 0),
               ('CNCL', 'Canceled', 0, 0),
               ('PNDG', 'Pending', 0, 0),
               ('SBMT', 'Submitted', 0, 0),
               ('TMB', 'Market-Buy', 0, 1),
               ('TMS', 'Market-Sell', 1, 1),
               ('TLB', 'Limit-Buy', 0, 0),
               ('TLS', 'Limit-Sell', 1, 0),
               ('TSL', 'Stop-Loss', 1, 0)) AS known (id, name, is_sell, is_market)
  FULL JOIN (SELECT CAST(st_id AS varchar(4)) AS id, st_name AS name, 0 AS is_sell, 0 AS is_market
               FROM brokerage.status_type
             UNION ALL
             SELECT CAST(tt_id AS varchar(4)), tt_name, CAST(tt_is_sell AS int), CAST(tt_is_mrkt AS int)
               FROM brokerage.trade_type) AS present ON present.id = known.id
 WHERE known.id IS NULL
    OR present.id IS NULL
    OR present.name <> known.name
    OR present.is_sell <> known.is_sell
    OR present.is_market <> known.is_market
