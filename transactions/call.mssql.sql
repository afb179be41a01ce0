-- A frame that is a transaction by itself: one round trip, which returns what the procedure returns.
-- XACT_ABORT ends the batch on any error, so COMMIT is never reached after one.
SET XACT_ABORT ON;
SET TRANSACTION ISOLATION LEVEL {isolation};
BEGIN TRANSACTION;
EXEC {procedure} {parameters};
COMMIT TRANSACTION;
