-- Read-Message: one message with its body, the first at a place (in millionths) of its mailbox, from the oldest to the
-- newest. Returns no row where somebody has just deleted it: the caller then asks again.
-- It neither begins nor commits (error 266): it reads only.
DROP PROCEDURE IF EXISTS mail.read_message;
GO
CREATE PROCEDURE mail.read_message
    @mailbox integer,
    @place integer
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @first integer;
    DECLARE @next integer;
    DECLARE @message integer;

    SELECT @first = mb_first, @next = mb_next FROM mail.mailbox WHERE mb_id = @mailbox;

    EXEC mail.message_at @mailbox, @first, @next, @place, @message OUTPUT;

    SELECT me_id, me_fo_id, me_received, me_sender, me_subject, me_read, me_bytes, bo_text
      FROM mail.message
      JOIN mail.body ON bo_mb_id = me_mb_id AND bo_me_id = me_id
     WHERE me_mb_id = @mailbox
       AND me_id = @message;
END;
