-- The message at a place (in millionths) of its mailbox, from the oldest to the newest: the first from that place on, and
-- the newest where none is left there. Gives its number.
-- It neither begins nor commits (error 266): its callers are in a transaction or read only.
DROP PROCEDURE IF EXISTS mail.message_at;
GO
CREATE PROCEDURE mail.message_at
    @mailbox integer,
    @first integer,
    @next integer,
    @place integer,
    @message integer OUTPUT
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SET @message = (SELECT MIN(me_id)
                      FROM mail.message
                     WHERE me_mb_id = @mailbox
                       AND me_id >= @first + CAST(@next - @first AS bigint) * @place / 1000000);
    IF @message IS NULL
        SET @message = (SELECT MAX(me_id) FROM mail.message WHERE me_mb_id = @mailbox);
END;
