-- Move-Message: a message at a place (in millionths) of its mailbox goes into another folder, where it lies in that one
-- already into the next. Returns its number.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- It neither begins nor commits (error 266): the calling batch does.
DROP PROCEDURE IF EXISTS mail.move_message;
GO
CREATE PROCEDURE mail.move_message
    @mailbox integer,
    @place integer,
    @folder smallint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @first integer;
    DECLARE @next integer;
    DECLARE @message integer;
    DECLARE @from smallint;
    DECLARE @unread integer;
    DECLARE @bytes integer;

    UPDATE mail.mailbox SET mb_moves = mb_moves + 1 WHERE mb_id = @mailbox;
    SELECT @first = mb_first, @next = mb_next FROM mail.mailbox WHERE mb_id = @mailbox;

    EXEC mail.message_at @mailbox, @first, @next, @place, @message OUTPUT;

    SELECT @from = me_fo_id, @unread = CASE me_read WHEN 1 THEN 0 ELSE 1 END, @bytes = me_bytes
      FROM mail.message
     WHERE me_mb_id = @mailbox
       AND me_id = @message;
    IF @folder = @from
        SET @folder = @from % 10 + 1;

    UPDATE mail.message SET me_fo_id = @folder WHERE me_mb_id = @mailbox AND me_id = @message;

    UPDATE mail.folder
       SET fo_messages = fo_messages - 1,
           fo_unread = fo_unread - @unread,
           fo_bytes = fo_bytes - @bytes
     WHERE fo_mb_id = @mailbox
       AND fo_id = @from;

    UPDATE mail.folder
       SET fo_messages = fo_messages + 1,
           fo_unread = fo_unread + @unread,
           fo_bytes = fo_bytes + @bytes
     WHERE fo_mb_id = @mailbox
       AND fo_id = @folder;

    SELECT @message AS message_id;
END;
