-- There are as many branches, tellers and accounts as the scale says.
SELECT name, expected, present
  FROM (SELECT 'branches' AS name, :branches AS expected, COUNT(*) AS present FROM bank.branches
        UNION ALL
        SELECT 'tellers', 10 * :branches, COUNT(*) FROM bank.tellers
        UNION ALL
        SELECT 'accounts', 100000 * :branches, COUNT(*) FROM bank.accounts) AS counted
 WHERE present <> expected
