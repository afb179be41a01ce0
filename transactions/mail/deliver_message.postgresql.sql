-- Deliver-Message: a new message comes into a folder, with its body. Returns its number in the mailbox.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- It neither begins nor commits: the caller's statement is the transaction.
CREATE OR REPLACE FUNCTION mail.deliver_message(
    p_mailbox integer, p_folder smallint, p_received timestamp(3), p_sender varchar(60), p_subject varchar(70),
    p_body text
)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    message_id integer;
    bytes integer := octet_length(p_body);
BEGIN
    UPDATE mail.mailbox
       SET mb_next = mb_next + 1,
           mb_messages = mb_messages + 1
     WHERE mb_id = p_mailbox
    RETURNING mb_next - 1 INTO message_id;

    INSERT INTO mail.message (me_mb_id, me_id, me_fo_id, me_received, me_sender, me_subject, me_read, me_bytes)
    VALUES (p_mailbox, message_id, p_folder, p_received, p_sender, p_subject, false, bytes);

    INSERT INTO mail.body (bo_mb_id, bo_me_id, bo_text)
    VALUES (p_mailbox, message_id, p_body);

    UPDATE mail.folder
       SET fo_messages = fo_messages + 1,
           fo_unread = fo_unread + 1,
           fo_bytes = fo_bytes + bytes
     WHERE fo_mb_id = p_mailbox
       AND fo_id = p_folder;

    RETURN message_id;
END
$$;
