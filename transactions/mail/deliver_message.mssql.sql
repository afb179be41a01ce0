-- Deliver-Message: a new message comes into a folder, with its body. Returns its number in the mailbox.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- It neither begins nor commits (error 266): the calling batch does.
DROP PROCEDURE IF EXISTS mail.deliver_message;
GO
CREATE PROCEDURE mail.deliver_message
    @mailbox integer,
    @folder smallint,
    @received datetime2(3),
    @sender varchar(60),
    @subject varchar(70),
    @body varchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @message integer;
    DECLARE @bytes integer = DATALENGTH(@body);

    UPDATE mail.mailbox
       SET mb_next = mb_next + 1,
           mb_messages = mb_messages + 1
     WHERE mb_id = @mailbox;
    SET @message = (SELECT mb_next - 1 FROM mail.mailbox WHERE mb_id = @mailbox);

    INSERT INTO mail.message (me_mb_id, me_id, me_fo_id, me_received, me_sender, me_subject, me_read, me_bytes)
    VALUES (@mailbox, @message, @folder, @received, @sender, @subject, 0, @bytes);

    INSERT INTO mail.body (bo_mb_id, bo_me_id, bo_text)
    VALUES (@mailbox, @message, @body);

    UPDATE mail.folder
       SET fo_messages = fo_messages + 1,
           fo_unread = fo_unread + 1,
           fo_bytes = fo_bytes + @bytes
     WHERE fo_mb_id = @mailbox
       AND fo_id = @folder;

    SELECT @message AS message_id;
END;
