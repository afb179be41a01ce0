-- One round trip, one transaction; returns the account's new balance.
-- XACT_ABORT ends the batch on any error, so COMMIT is never reached after one.
SET XACT_ABORT ON;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN TRANSACTION;
EXEC bank.transfer ?, ?, ?, ?;
COMMIT TRANSACTION;
