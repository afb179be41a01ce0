-- Delete-Message: the message at a place (in millionths) of its mailbox goes, with its body. So that a mailbox keeps its
-- size: two go where it holds more than it may, none where it holds as few as it may. Returns how many.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- It neither begins nor commits: the caller's statement is the transaction.
CREATE OR REPLACE FUNCTION mail.delete_message(p_mailbox integer, p_place integer)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    first_id integer;
    next_id integer;
    to_go integer;
    gone integer := 0;
    chosen integer;
    in_folder smallint;
    is_read boolean;
    bytes integer;
BEGIN
    SELECT mb_first,
           mb_next,
           CASE WHEN mb_messages > mb_most THEN 2 WHEN mb_messages > mb_least THEN 1 ELSE 0 END
      INTO first_id, next_id, to_go
      FROM mail.mailbox
     WHERE mb_id = p_mailbox
       FOR NO KEY UPDATE;

    WHILE gone < to_go LOOP
        chosen := mail.message_at(p_mailbox, first_id, next_id, p_place);

        SELECT me_fo_id, me_read, me_bytes INTO in_folder, is_read, bytes
          FROM mail.message
         WHERE me_mb_id = p_mailbox
           AND me_id = chosen;

        DELETE FROM mail.message WHERE me_mb_id = p_mailbox AND me_id = chosen;
        DELETE FROM mail.body WHERE bo_mb_id = p_mailbox AND bo_me_id = chosen;

        UPDATE mail.folder
           SET fo_messages = fo_messages - 1,
               fo_unread = fo_unread - CASE WHEN is_read THEN 0 ELSE 1 END,
               fo_bytes = fo_bytes - bytes
         WHERE fo_mb_id = p_mailbox
           AND fo_id = in_folder;

        gone := gone + 1;
    END LOOP;

    IF gone > 0 THEN
        UPDATE mail.mailbox
           SET mb_first = (SELECT MIN(me_id) FROM mail.message WHERE me_mb_id = p_mailbox AND me_id >= first_id),
               mb_messages = mb_messages - gone,
               mb_deletes = mb_deletes + 1
         WHERE mb_id = p_mailbox;
    END IF;

    RETURN gone;
END
$$;
