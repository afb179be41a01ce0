-- Update-Message, two frames: a message at a place (in millionths) of its mailbox is marked as read, or as unread where
-- it was read; or its body is replaced by another. Both return its number.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- They neither begin nor commit: the caller's statement is the transaction.
CREATE OR REPLACE FUNCTION mail.update_message_mark(p_mailbox integer, p_place integer)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    first_id integer;
    next_id integer;
    chosen integer;
    in_folder smallint;
    is_read boolean;
BEGIN
    UPDATE mail.mailbox
       SET mb_updates = mb_updates + 1
     WHERE mb_id = p_mailbox
    RETURNING mb_first, mb_next INTO first_id, next_id;

    chosen := mail.message_at(p_mailbox, first_id, next_id, p_place);

    SELECT me_fo_id, me_read INTO in_folder, is_read
      FROM mail.message
     WHERE me_mb_id = p_mailbox
       AND me_id = chosen;

    UPDATE mail.message
       SET me_read = NOT is_read
     WHERE me_mb_id = p_mailbox
       AND me_id = chosen;

    UPDATE mail.folder
       SET fo_unread = fo_unread + CASE WHEN is_read THEN 1 ELSE -1 END
     WHERE fo_mb_id = p_mailbox
       AND fo_id = in_folder;

    RETURN chosen;
END
$$;

CREATE OR REPLACE FUNCTION mail.update_message_body(p_mailbox integer, p_place integer, p_body text)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    first_id integer;
    next_id integer;
    chosen integer;
    in_folder smallint;
    before integer;
    bytes integer := octet_length(p_body);
BEGIN
    UPDATE mail.mailbox
       SET mb_updates = mb_updates + 1
     WHERE mb_id = p_mailbox
    RETURNING mb_first, mb_next INTO first_id, next_id;

    chosen := mail.message_at(p_mailbox, first_id, next_id, p_place);

    SELECT me_fo_id, me_bytes INTO in_folder, before
      FROM mail.message
     WHERE me_mb_id = p_mailbox
       AND me_id = chosen;

    UPDATE mail.message SET me_bytes = bytes WHERE me_mb_id = p_mailbox AND me_id = chosen;
    UPDATE mail.body SET bo_text = p_body WHERE bo_mb_id = p_mailbox AND bo_me_id = chosen;

    UPDATE mail.folder
       SET fo_bytes = fo_bytes + bytes - before
     WHERE fo_mb_id = p_mailbox
       AND fo_id = in_folder;

    RETURN chosen;
END
$$;
