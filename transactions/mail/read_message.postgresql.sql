-- Read-Message: one message with its body, the first at a place (in millionths) of its mailbox, from the oldest to the
-- newest. Returns no row where somebody has just deleted it: the caller then asks again.
-- It neither begins nor commits: it reads only.
CREATE OR REPLACE FUNCTION mail.read_message(p_mailbox integer, p_place integer)
RETURNS TABLE (
    message_id integer,
    folder_id smallint,
    received timestamp,
    sender varchar(60),
    subject varchar(70),
    is_read boolean,
    bytes integer,
    body text
)
LANGUAGE plpgsql
AS $$
DECLARE
    first_id integer;
    next_id integer;
    chosen integer;
BEGIN
    SELECT mb_first, mb_next INTO first_id, next_id FROM mail.mailbox WHERE mb_id = p_mailbox;

    chosen := mail.message_at(p_mailbox, first_id, next_id, p_place);

    RETURN QUERY
    SELECT me_id, me_fo_id, me_received, me_sender, me_subject, me_read, me_bytes, bo_text
      FROM mail.message
      JOIN mail.body ON bo_mb_id = me_mb_id AND bo_me_id = me_id
     WHERE me_mb_id = p_mailbox
       AND me_id = chosen;
END
$$;
