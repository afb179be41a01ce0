-- A teller's balance is the sum of all amounts its history has.
SELECT t.tid, h.tid AS history_tid, t.tbalance, h.total AS history_total
  FROM bank.tellers t
  FULL JOIN (SELECT tid, SUM(CAST(delta AS bigint)) AS total FROM bank.history GROUP BY tid) h ON h.tid = t.tid
 WHERE t.tid IS NULL OR t.tbalance IS NULL OR t.tbalance <> COALESCE(h.total, 0)
