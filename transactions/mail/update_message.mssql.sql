-- Update-Message, two frames: a message at a place (in millionths) of its mailbox is marked as read, or as unread where
-- it was read; or its body is replaced by another. Both return its number.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- They neither begin nor commit (error 266): the calling batch does.
DROP PROCEDURE IF EXISTS mail.update_message_mark;
GO
CREATE PROCEDURE mail.update_message_mark
    @mailbox integer,
    @place integer
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @first integer;
    DECLARE @next integer;
    DECLARE @message integer;
    DECLARE @folder smallint;
    DECLARE @read bit;

    UPDATE mail.mailbox SET mb_updates = mb_updates + 1 WHERE mb_id = @mailbox;
    SELECT @first = mb_first, @next = mb_next FROM mail.mailbox WHERE mb_id = @mailbox;

    EXEC mail.message_at @mailbox, @first, @next, @place, @message OUTPUT;

    SELECT @folder = me_fo_id, @read = me_read
      FROM mail.message
     WHERE me_mb_id = @mailbox
       AND me_id = @message;

    UPDATE mail.message
       SET me_read = CASE @read WHEN 1 THEN 0 ELSE 1 END
     WHERE me_mb_id = @mailbox
       AND me_id = @message;

    UPDATE mail.folder
       SET fo_unread = fo_unread + CASE @read WHEN 1 THEN 1 ELSE -1 END
     WHERE fo_mb_id = @mailbox
       AND fo_id = @folder;

    SELECT @message AS message_id;
END;
GO
DROP PROCEDURE IF EXISTS mail.update_message_body;
GO
CREATE PROCEDURE mail.update_message_body
    @mailbox integer,
    @place integer,
    @body varchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @first integer;
    DECLARE @next integer;
    DECLARE @message integer;
    DECLARE @folder smallint;
    DECLARE @before integer;
    DECLARE @bytes integer = DATALENGTH(@body);

    UPDATE mail.mailbox SET mb_updates = mb_updates + 1 WHERE mb_id = @mailbox;
    SELECT @first = mb_first, @next = mb_next FROM mail.mailbox WHERE mb_id = @mailbox;

    EXEC mail.message_at @mailbox, @first, @next, @place, @message OUTPUT;

    SELECT @folder = me_fo_id, @before = me_bytes
      FROM mail.message
     WHERE me_mb_id = @mailbox
       AND me_id = @message;

    UPDATE mail.message SET me_bytes = @bytes WHERE me_mb_id = @mailbox AND me_id = @message;
    UPDATE mail.body SET bo_text = @body WHERE bo_mb_id = @mailbox AND bo_me_id = @message;

    UPDATE mail.folder
       SET fo_bytes = fo_bytes + @bytes - @before
     WHERE fo_mb_id = @mailbox
       AND fo_id = @folder;

    SELECT @message AS message_id;
END;
