-- One round trip, one transaction; returns how many orders were cancelled that waited, and that were not answered.
-- XACT_ABORT ends the batch on any error, so COMMIT is never reached after one.
SET XACT_ABORT ON;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN TRANSACTION;
EXEC brokerage.trade_cleanup_cancel ?, ?;
COMMIT TRANSACTION;
