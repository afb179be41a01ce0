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
    OR f.fo_bytes <> COALESCE(m.bytes, 0)
