-- A branch's balance is the sum of all amounts its history has.
SELECT b.bid, h.bid AS history_bid, b.bbalance, h.total AS history_total
  FROM bank.branches b
  FULL JOIN (SELECT bid, SUM(CAST(delta AS bigint)) AS total FROM bank.history GROUP BY bid) h ON h.bid = b.bid
 WHERE b.bid IS NULL OR b.bbalance IS NULL OR b.bbalance <> COALESCE(h.total, 0)
