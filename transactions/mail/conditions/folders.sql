-- Every mailbox has all folders, numbered from 1 and under the same names.
SELECT b.mb_id, COUNT(f.fo_id) AS folders, MIN(f.fo_name) AS first_name, MAX(f.fo_name) AS last_name
  FROM mail.mailbox b
  LEFT JOIN mail.folder f
    ON f.fo_mb_id = b.mb_id
   AND f.fo_id BETWEEN 1 AND :folders
   AND f.fo_name = CASE f.fo_id
                   WHEN 1 THEN 'Inbox' WHEN 2 THEN 'Sent Items' WHEN 3 THEN 'Deleted Items' WHEN 4 THEN 'Drafts'
                   WHEN 5 THEN 'Archive' WHEN 6 THEN 'Customers' WHEN 7 THEN 'Suppliers' WHEN 8 THEN 'Projects'
                   WHEN 9 THEN 'Team' ELSE 'Private' END
 GROUP BY b.mb_id
HAVING COUNT(f.fo_id) <> :folders
