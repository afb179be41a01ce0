-- The message at a place (in millionths) of its mailbox, from the oldest to the newest: the first from that place on, and
-- the newest where none is left there. Returns its number.
CREATE OR REPLACE FUNCTION mail.message_at(p_mailbox integer, p_first integer, p_next integer, p_place integer)
RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT COALESCE(
        (SELECT MIN(me_id)
           FROM mail.message
          WHERE me_mb_id = p_mailbox
            AND me_id >= p_first + CAST(p_next - p_first AS bigint) * p_place / 1000000),
        (SELECT MAX(me_id) FROM mail.message WHERE me_mb_id = p_mailbox))
$$;
