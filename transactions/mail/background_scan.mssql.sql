-- Background-Scan: bodies are read one after the other, for a checksum, from a message of a mailbox on, and until they
-- have so many bytes together; at least one. Returns the last one's number, their bytes and their checksum; nulls where
-- none is left in the mailbox.
-- It neither begins nor commits (error 266): it reads only.
DROP PROCEDURE IF EXISTS mail.background_scan;
GO
CREATE PROCEDURE mail.background_scan
    @mailbox integer,
    @from integer,
    @budget bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @last integer;
    DECLARE @bytes bigint;

    SELECT @last = MAX(me_id), @bytes = SUM(CAST(me_bytes AS bigint))
      FROM (SELECT me_id,
                   me_bytes,
                   SUM(CAST(me_bytes AS bigint)) OVER (ORDER BY me_id ROWS UNBOUNDED PRECEDING) - me_bytes AS before
              FROM (SELECT TOP (1000) me_id, me_bytes
                      FROM mail.message
                     WHERE me_mb_id = @mailbox
                       AND me_id >= @from
                     ORDER BY me_id) AS coming) AS summed
     WHERE before < @budget;

    SELECT @last AS last_id,
           @bytes AS bytes,
           (SELECT SUM(CONVERT(bigint, 0x00 + SUBSTRING(HASHBYTES('MD5', bo_text), 1, 4)))
              FROM mail.body
             WHERE bo_mb_id = @mailbox
               AND bo_me_id BETWEEN @from AND @last) AS checksum;
END;
