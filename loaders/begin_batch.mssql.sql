-- Before a batch is bulk copied, whose rows are in for good as they arrive: take it for this session, note in the
-- ledger that it has begun, and remove what a loader that died has left of it.
-- Error 50001: the batch is in, or another loader that is alive is at it.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @taken integer;
EXEC @taken = sp_getapplock
    @Resource = 'stallmark.{group}.{number}', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 15000;
IF @taken < 0
    THROW 50001, 'Another loader is at this batch.', 1;
IF EXISTS (SELECT 1 FROM stallmark.ledger WHERE table_group = '{group}' AND batch = {number} AND row_count IS NOT NULL)
    THROW 50001, 'This batch is in already.', 1;
IF EXISTS (SELECT 1 FROM stallmark.ledger WHERE table_group = '{group}' AND batch = {number})
BEGIN
    {remove}
END
ELSE
    INSERT INTO stallmark.ledger (table_group, batch) VALUES ('{group}', {number});
