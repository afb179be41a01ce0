-- The bank's one transaction: the statements of pgbench's built-in script, in its order.
-- Rows are always locked account, teller, branch: no two transfers wait for each other in a circle.
-- It neither begins nor commits (error 266): the calling batch does.
DROP PROCEDURE IF EXISTS bank.transfer;
GO
CREATE PROCEDURE bank.transfer
    @aid integer,
    @tid integer,
    @bid integer,
    @delta integer
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @new_balance integer;

    UPDATE bank.accounts SET abalance = abalance + @delta WHERE aid = @aid;
    SELECT @new_balance = abalance FROM bank.accounts WHERE aid = @aid;
    UPDATE bank.tellers SET tbalance = tbalance + @delta WHERE tid = @tid;
    UPDATE bank.branches SET bbalance = bbalance + @delta WHERE bid = @bid;
    INSERT INTO bank.history (tid, bid, aid, delta, mtime)
    VALUES (@tid, @bid, @aid, @delta, SYSUTCDATETIME());

    SELECT @new_balance AS abalance;
END;
