-- Delete-Message: the message at a place (in millionths) of its mailbox goes, with its body. So that a mailbox keeps its
-- size: two go where it holds more than it may, none where it holds as few as it may. Returns how many.
-- The mailbox's row is locked first, by everyone who changes something in it: no two wait for each other in a circle.
-- It neither begins nor commits (error 266): the calling batch does.
DROP PROCEDURE IF EXISTS mail.delete_message;
GO
CREATE PROCEDURE mail.delete_message
    @mailbox integer,
    @place integer
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @first integer;
    DECLARE @next integer;
    DECLARE @to_go integer;
    DECLARE @gone integer = 0;
    DECLARE @message integer;
    DECLARE @folder smallint;
    DECLARE @read bit;
    DECLARE @bytes integer;

    UPDATE mail.mailbox
       SET mb_deletes = mb_deletes + CASE WHEN mb_messages > mb_least THEN 1 ELSE 0 END
     WHERE mb_id = @mailbox;
    SELECT @first = mb_first,
           @next = mb_next,
           @to_go = CASE WHEN mb_messages > mb_most THEN 2 WHEN mb_messages > mb_least THEN 1 ELSE 0 END
      FROM mail.mailbox
     WHERE mb_id = @mailbox;

    WHILE @gone < @to_go
    BEGIN
        EXEC mail.message_at @mailbox, @first, @next, @place, @message OUTPUT;

        SELECT @folder = me_fo_id, @read = me_read, @bytes = me_bytes
          FROM mail.message
         WHERE me_mb_id = @mailbox
           AND me_id = @message;

        DELETE FROM mail.message WHERE me_mb_id = @mailbox AND me_id = @message;
        DELETE FROM mail.body WHERE bo_mb_id = @mailbox AND bo_me_id = @message;

        UPDATE mail.folder
           SET fo_messages = fo_messages - 1,
               fo_unread = fo_unread - CASE @read WHEN 1 THEN 0 ELSE 1 END,
               fo_bytes = fo_bytes - @bytes
         WHERE fo_mb_id = @mailbox
           AND fo_id = @folder;

        SET @gone = @gone + 1;
    END;

    IF @gone > 0
        UPDATE mail.mailbox
           SET mb_first = (SELECT MIN(me_id) FROM mail.message WHERE me_mb_id = @mailbox AND me_id >= @first),
               mb_messages = mb_messages - @gone
         WHERE mb_id = @mailbox;

    SELECT @gone AS deleted;
END;
