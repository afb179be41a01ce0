-- Take the lock that one build at a time has, for this session; waits for it.
SET NOCOUNT ON;
DECLARE @taken integer;
EXEC @taken = sp_getapplock
    @Resource = 'stallmark.build', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = -1;
IF @taken < 0
    THROW 50002, 'The lock that one build at a time has cannot be taken.', 1;
