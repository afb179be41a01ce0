-- Consistency conditions: each query returns the offending rows, and `:name` is a number of the scale. In brackets:
-- `cheap` reads aggregates or small tables, others read large ones completely; `fresh` holds only until transactions
-- have run on the loaded database; `statistical` has a tolerance.

-- [folder_totals] a folder's totals are those of its messages
-- A folder's messages, those of them that are unread, and their bytes are those of the messages that lie in it.
SELECT f.fo_mb_id, f.fo_id, m.me_mb_id, m.me_fo_id, f.fo_messages, m.messages, f.fo_unread, m.unread, f.fo_bytes, m.bytes
  FROM mail.folder f
  FULL JOIN (SELECT me_mb_id,
                    me_fo_id,
                    COUNT(*) AS messages,
                    SUM(1 - CAST(me_read AS integer)) AS unread,
                    SUM(CAST(me_bytes AS bigint)) AS bytes
               FROM mail.message
              GROUP BY me_mb_id, me_fo_id) m
    ON m.me_mb_id = f.fo_mb_id AND m.me_fo_id = f.fo_id
 WHERE f.fo_id IS NULL
    OR f.fo_messages <> COALESCE(m.messages, 0)
    OR f.fo_unread <> COALESCE(m.unread, 0)
    OR f.fo_bytes <> COALESCE(m.bytes, 0);

-- [mailbox_totals] a mailbox counts its messages, from the oldest on
-- A mailbox counts its messages, knows the oldest, and has a number for the next one that nobody has.
SELECT b.mb_id, m.me_mb_id, b.mb_messages, m.messages, b.mb_first, m.oldest, b.mb_next, m.newest
  FROM mail.mailbox b
  FULL JOIN (SELECT me_mb_id, COUNT(*) AS messages, MIN(me_id) AS oldest, MAX(me_id) AS newest
               FROM mail.message
              GROUP BY me_mb_id) m ON m.me_mb_id = b.mb_id
 WHERE b.mb_id IS NULL
    OR m.me_mb_id IS NULL
    OR b.mb_messages <> m.messages
    OR b.mb_first <> m.oldest
    OR b.mb_next <= m.newest;

-- [bodies] a message has its body, whole, and a body its message
-- A message has a body of its size, and no body is without a message. Each body ends with a full stop: where something
-- is missing at its end, or too much, it is not found in its place.
SELECT m.me_mb_id, m.me_id, b.bo_mb_id, b.bo_me_id, m.me_bytes
  FROM mail.message m
  FULL JOIN mail.body b ON b.bo_mb_id = m.me_mb_id AND b.bo_me_id = m.me_id
 WHERE m.me_id IS NULL
    OR b.bo_me_id IS NULL
    OR CONCAT('[', SUBSTRING(b.bo_text, m.me_bytes, 2), ']') <> '[.]';

-- [deliveries, cheap] messages that came are there, or a delete took them
-- Of all messages that have come those are missing that a delete took: one each, two where the mailbox was too full.
SELECT mb_id, mb_next, mb_messages, mb_deletes
  FROM mail.mailbox
 WHERE mb_next - 1 - mb_messages NOT BETWEEN mb_deletes AND 2 * mb_deletes
    OR mb_messages < mb_least
    OR mb_least <> :least
    OR mb_most <> :most;

-- [rows, cheap] as many mailboxes and folders as the scale says
SELECT table_name, expected, present
  FROM (SELECT 'mailbox' AS table_name, :mailboxes AS expected, COUNT(*) AS present FROM mail.mailbox
        UNION ALL
        SELECT 'folder', :mailboxes * :folders, COUNT(*) FROM mail.folder) AS counted
 WHERE present <> expected;

-- [folders, cheap] every mailbox has all folders, under their names
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
HAVING COUNT(f.fo_id) <> :folders;

-- [loaded, cheap, fresh] mailboxes are as they were loaded
-- A mailbox as it was loaded: so many messages, the first numbers, and nothing has been done to it.
SELECT mb_id, mb_first, mb_next, mb_messages, mb_deletes, mb_updates, mb_moves
  FROM mail.mailbox
 WHERE mb_first <> 1
    OR mb_next <> :messages + 1
    OR mb_messages <> :messages
    OR mb_deletes + mb_updates + mb_moves <> 0;

-- [body_sizes, cheap, statistical, fresh] bodies have 75 KB on average
-- Bodies have 75,000 bytes on average. Their sizes scatter by five times as much: the mean of n bodies differs by more
-- than 25 / sqrt(n) of that once in a million databases, and of few bodies by more, because they are not normal.
SELECT 'bodies' AS name, messages, bytes / messages AS mean_bytes
  FROM (SELECT SUM(CAST(fo_messages AS bigint)) AS messages, SUM(fo_bytes) AS bytes FROM mail.folder) AS total
 WHERE ABS(bytes * 1.0 / messages / 75000 - 1) > 30 / SQRT(messages);
