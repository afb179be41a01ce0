-- Market-Feed, one frame for each ticker: the last trade of a security is written down, and limit orders for it whose
-- price has come are submitted. Returns these; they go to the market when the caller has committed.
-- A stop-loss sells when the price has fallen to its limit, a limit-sell when it has risen to it, a limit-buy buys when
-- it has fallen to it.
--
-- The row of last_trade is locked first, and with it the requests for the security: of two feeds that report it at once
-- the later waits here, so none of its orders goes to the market twice. A ticker is short and locks no other, so it
-- makes no difference in which order a feed has them: they come as the tape has them. It neither begins nor commits
-- (error 266): market_feed_ticker.call does.
DROP PROCEDURE IF EXISTS brokerage.market_feed_ticker;
GO
CREATE PROCEDURE brokerage.market_feed_ticker
    @symbol varchar(15),
    @price decimal(8, 2),
    @quantity integer,
    @now datetime2(3)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @triggered TABLE (trade_id bigint NOT NULL PRIMARY KEY, quantity integer NOT NULL);
    DECLARE @trade_id bigint;

    UPDATE brokerage.last_trade
       SET lt_price = @price,
           lt_dts = @now,
           lt_vol = lt_vol + @quantity
     WHERE lt_s_symb = @symbol;
    IF @@ROWCOUNT = 0
        THROW 50000, 'there is no last trade of that security: run `stallmark check`', 1;

    -- Only few requests wait, so the table would be scanned. Then a feed would wait for orders of other securities that
    -- others have just submitted, and these for its own: a deadlock.
    INSERT INTO @triggered (trade_id, quantity)
    SELECT tr_t_id, tr_qty
      FROM brokerage.trade_request WITH (FORCESEEK)
     WHERE tr_s_symb = @symbol
       AND ((tr_tt_id = 'TSL' AND tr_bid_price >= @price)
            OR (tr_tt_id = 'TLS' AND tr_bid_price <= @price)
            OR (tr_tt_id = 'TLB' AND tr_bid_price >= @price));

    SET @trade_id = (SELECT MIN(trade_id) FROM @triggered);
    WHILE @trade_id IS NOT NULL
    BEGIN
        UPDATE brokerage.trade SET t_dts = @now, t_st_id = 'SBMT' WHERE t_id = @trade_id;
        DELETE FROM brokerage.trade_request WHERE tr_t_id = @trade_id;
        INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id) VALUES (@trade_id, @now, 'SBMT');
        SET @trade_id = (SELECT MIN(trade_id) FROM @triggered WHERE trade_id > @trade_id);
    END;

    SELECT trade_id, quantity FROM @triggered ORDER BY trade_id;
END;
