-- A branch's balance is the sum of its tellers' balances.
SELECT b.bid, b.bbalance, t.total AS tellers_total
  FROM bank.branches b
  FULL JOIN (SELECT bid, SUM(CAST(tbalance AS bigint)) AS total FROM bank.tellers GROUP BY bid) t ON t.bid = b.bid
 WHERE b.bid IS NULL OR t.bid IS NULL OR b.bbalance IS NULL OR t.total IS NULL OR b.bbalance <> t.total
