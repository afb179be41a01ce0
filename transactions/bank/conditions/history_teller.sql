-- A history row names the branch of its teller.
SELECT h.tid, h.bid, t.bid AS teller_bid
  FROM bank.history h
  LEFT JOIN bank.tellers t ON t.tid = h.tid
 WHERE t.tid IS NULL OR h.bid IS NULL OR h.bid <> t.bid
