-- The bank's one transaction: the statements of pgbench's built-in script, in its order.
-- Rows are always locked account, teller, branch: no two transfers wait for each other in a circle.
-- It neither begins nor commits: the caller's statement is the transaction.
CREATE OR REPLACE FUNCTION bank.transfer(p_aid integer, p_tid integer, p_bid integer, p_delta integer)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    new_balance integer;
BEGIN
    UPDATE bank.accounts SET abalance = abalance + p_delta WHERE aid = p_aid;
    SELECT abalance INTO new_balance FROM bank.accounts WHERE aid = p_aid;
    UPDATE bank.tellers SET tbalance = tbalance + p_delta WHERE tid = p_tid;
    UPDATE bank.branches SET bbalance = bbalance + p_delta WHERE bid = p_bid;
    INSERT INTO bank.history (tid, bid, aid, delta, mtime)
    VALUES (p_tid, p_bid, p_aid, p_delta, CURRENT_TIMESTAMP);
    RETURN new_balance;
END
$$;
