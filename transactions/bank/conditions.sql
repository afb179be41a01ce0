-- Consistency conditions: each query returns the offending rows, and `:name` is a number of the scale. In brackets:
-- `cheap` reads aggregates or small tables, others read large ones completely; `fresh` holds only until transactions
-- have run on the loaded database; `statistical` has a tolerance.

-- [branch_tellers, cheap] a branch's balance is the sum of its tellers' balances
SELECT b.bid, b.bbalance, t.total AS tellers_total
  FROM bank.branches b
  FULL JOIN (SELECT bid, SUM(CAST(tbalance AS bigint)) AS total FROM bank.tellers GROUP BY bid) t ON t.bid = b.bid
 WHERE b.bid IS NULL OR t.bid IS NULL OR b.bbalance IS NULL OR t.total IS NULL OR b.bbalance <> t.total;

-- [branch_history] a branch's balance is the sum of its history
SELECT b.bid, h.bid AS history_bid, b.bbalance, h.total AS history_total
  FROM bank.branches b
  FULL JOIN (SELECT bid, SUM(CAST(delta AS bigint)) AS total FROM bank.history GROUP BY bid) h ON h.bid = b.bid
 WHERE b.bid IS NULL OR b.bbalance IS NULL OR b.bbalance <> COALESCE(h.total, 0);

-- [teller_history] a teller's balance is the sum of its history
SELECT t.tid, h.tid AS history_tid, t.tbalance, h.total AS history_total
  FROM bank.tellers t
  FULL JOIN (SELECT tid, SUM(CAST(delta AS bigint)) AS total FROM bank.history GROUP BY tid) h ON h.tid = t.tid
 WHERE t.tid IS NULL OR t.tbalance IS NULL OR t.tbalance <> COALESCE(h.total, 0);

-- [account_history] an account's balance is the sum of its history
SELECT a.aid, h.aid AS history_aid, a.abalance, h.total AS history_total
  FROM bank.accounts a
  FULL JOIN (SELECT aid, SUM(CAST(delta AS bigint)) AS total FROM bank.history GROUP BY aid) h ON h.aid = a.aid
 WHERE a.aid IS NULL OR a.abalance IS NULL OR a.abalance <> COALESCE(h.total, 0);

-- [history_teller] a history row names the branch of its teller
SELECT h.tid, h.bid, t.bid AS teller_bid
  FROM bank.history h
  LEFT JOIN bank.tellers t ON t.tid = h.tid
 WHERE t.tid IS NULL OR h.bid IS NULL OR h.bid <> t.bid;

-- [rows] as many branches, tellers and accounts as the scale says
SELECT name, expected, present
  FROM (SELECT 'branches' AS name, :branches AS expected, COUNT(*) AS present FROM bank.branches
        UNION ALL
        SELECT 'tellers', 10 * :branches, COUNT(*) FROM bank.tellers
        UNION ALL
        SELECT 'accounts', 100000 * :branches, COUNT(*) FROM bank.accounts) AS counted
 WHERE present <> expected;

-- [belongs] tellers and accounts belong to their branch
-- Tellers and accounts are numbered through, ten and 100,000 to a branch, and carry their branch's number.
SELECT 'teller' AS kind, tid AS id, bid FROM bank.tellers
 WHERE bid IS NULL OR bid <> (tid - 1) / 10 + 1 OR tid < 1 OR tid > 10 * :branches
UNION ALL
SELECT 'account', aid, bid FROM bank.accounts
 WHERE bid IS NULL OR bid <> (aid - 1) / 100000 + 1 OR aid < 1 OR aid > 100000 * :branches;
