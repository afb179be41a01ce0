-- There are as many branches, tellers and accounts as the scale says.
SELECT name, expected, found
  FROM (SELECT 'branches' AS name, :branches AS expected, COUNT(*) AS found FROM bank.branches
        UNION ALL
        SELECT 'tellers', 10 * :branches, COUNT(*) FROM bank.tellers
        UNION ALL
        SELECT 'accounts', 100000 * :branches, COUNT(*) FROM bank.accounts) AS counted
 WHERE found <> expected
