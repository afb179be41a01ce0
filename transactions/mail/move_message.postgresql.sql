-- Move-Message: a message at a place (in millionths) of its mailbox goes into another folder, where it lies in that one
-- already into the next. Returns its number.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- It neither begins nor commits: the caller's statement is the transaction.
CREATE OR REPLACE FUNCTION mail.move_message(p_mailbox integer, p_place integer, p_folder smallint)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    first_id integer;
    next_id integer;
    chosen integer;
    from_folder smallint;
    to_folder smallint := p_folder;
    unread integer;
    bytes integer;
BEGIN
    UPDATE mail.mailbox
       SET mb_moves = mb_moves + 1
     WHERE mb_id = p_mailbox
    RETURNING mb_first, mb_next INTO first_id, next_id;

    chosen := mail.message_at(p_mailbox, first_id, next_id, p_place);

    SELECT me_fo_id, CASE WHEN me_read THEN 0 ELSE 1 END, me_bytes INTO from_folder, unread, bytes
      FROM mail.message
     WHERE me_mb_id = p_mailbox
       AND me_id = chosen;
    IF to_folder = from_folder THEN
        to_folder := from_folder % 10 + 1;
    END IF;

    UPDATE mail.message SET me_fo_id = to_folder WHERE me_mb_id = p_mailbox AND me_id = chosen;

    UPDATE mail.folder
       SET fo_messages = fo_messages - 1,
           fo_unread = fo_unread - unread,
           fo_bytes = fo_bytes - bytes
     WHERE fo_mb_id = p_mailbox
       AND fo_id = from_folder;

    UPDATE mail.folder
       SET fo_messages = fo_messages + 1,
           fo_unread = fo_unread + unread,
           fo_bytes = fo_bytes + bytes
     WHERE fo_mb_id = p_mailbox
       AND fo_id = to_folder;

    RETURN chosen;
END
$$;
