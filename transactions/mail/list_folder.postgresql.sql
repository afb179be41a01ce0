-- List-Folder: the newest messages of a folder, without their bodies, the newest first.
-- It neither begins nor commits: it reads only.
CREATE OR REPLACE FUNCTION mail.list_folder(p_mailbox integer, p_folder smallint, p_most integer)
RETURNS TABLE (
    message_id integer,
    received timestamp,
    sender varchar(60),
    subject varchar(70),
    is_read boolean,
    bytes integer
)
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY
    SELECT me_id, me_received, me_sender, me_subject, me_read, me_bytes
      FROM mail.message
     WHERE me_mb_id = p_mailbox
       AND me_fo_id = p_folder
     ORDER BY me_id DESC
     LIMIT p_most;
END
$$;
