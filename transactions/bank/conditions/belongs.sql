-- Tellers and accounts are numbered through, ten and 100,000 to a branch, and carry their branch's number.
SELECT 'teller' AS kind, tid AS id, bid FROM bank.tellers
 WHERE bid IS NULL OR bid <> (tid - 1) / 10 + 1 OR tid < 1 OR tid > 10 * :branches
UNION ALL
SELECT 'account', aid, bid FROM bank.accounts
 WHERE bid IS NULL OR bid <> (aid - 1) / 100000 + 1 OR aid < 1 OR aid > 100000 * :branches
