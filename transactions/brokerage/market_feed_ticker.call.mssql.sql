-- One round trip, one transaction; returns the limit orders whose price has come.
-- XACT_ABORT ends the batch on any error, so COMMIT is never reached after one.
SET XACT_ABORT ON;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
BEGIN TRANSACTION;
EXEC brokerage.market_feed_ticker ?, ?, ?, ?;
COMMIT TRANSACTION;
