-- There are as many mailboxes and folders as the scale says.
SELECT table_name, expected, present
  FROM (SELECT 'mailbox' AS table_name, :mailboxes AS expected, COUNT(*) AS present FROM mail.mailbox
        UNION ALL
        SELECT 'folder', :mailboxes * :folders, COUNT(*) FROM mail.folder) AS counted
 WHERE present <> expected
