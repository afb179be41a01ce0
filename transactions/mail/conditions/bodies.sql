-- A message has a body of its size, and no body is without a message. Each body ends with a full stop: where something
-- is missing at its end, or too much, it is not found in its place.
SELECT m.me_mb_id, m.me_id, b.bo_mb_id, b.bo_me_id, m.me_bytes
  FROM mail.message m
  FULL JOIN mail.body b ON b.bo_mb_id = m.me_mb_id AND b.bo_me_id = m.me_id
 WHERE m.me_id IS NULL
    OR b.bo_me_id IS NULL
    OR CONCAT('[', SUBSTRING(b.bo_text, m.me_bytes, 2), ']') <> '[.]'
