-- An account's balance is the sum of all amounts its history has.
SELECT a.aid, h.aid AS history_aid, a.abalance, h.total AS history_total
  FROM bank.accounts a
  FULL JOIN (SELECT aid, SUM(CAST(delta AS bigint)) AS total FROM bank.history GROUP BY aid) h ON h.aid = a.aid
 WHERE a.aid IS NULL OR a.abalance IS NULL OR a.abalance <> COALESCE(h.total, 0)
