-- List-Folder: the newest messages of a folder, without their bodies, the newest first.
-- It neither begins nor commits (error 266): it reads only.
DROP PROCEDURE IF EXISTS mail.list_folder;
GO
CREATE PROCEDURE mail.list_folder
    @mailbox integer,
    @folder smallint,
    @most integer
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT TOP (@most) me_id, me_received, me_sender, me_subject, me_read, me_bytes
      FROM mail.message
     WHERE me_mb_id = @mailbox
       AND me_fo_id = @folder
     ORDER BY me_id DESC;
END;
