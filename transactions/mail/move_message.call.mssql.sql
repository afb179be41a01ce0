-- One round trip, one transaction; returns the number of the message.
-- XACT_ABORT ends the batch on any error, so COMMIT is never reached after one.
SET XACT_ABORT ON;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN TRANSACTION;
EXEC mail.move_message ?, ?, ?;
COMMIT TRANSACTION;
