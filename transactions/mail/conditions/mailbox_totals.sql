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
    OR b.mb_next <= m.newest
