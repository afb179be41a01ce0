-- Market-Feed, one frame for each ticker: the last trade of a security is written down, and limit orders for it whose
-- price has come are submitted. Returns these; they go to the market when the caller has committed.
-- A stop-loss sells when the price has fallen to its limit, a limit-sell when it has risen to it, a limit-buy buys when
-- it has fallen to it.
--
-- At READ COMMITTED, with the outcome of REPEATABLE READ. That would abort (40001) the later of two feeds that report a
-- security at once, where SQL Server lets it wait; here it waits too:
--   * The row of last_trade is locked first, and with it the requests for the security: nobody else takes one away, and
--     what follows is a statement of its own, whose snapshot is younger than the lock. So no order that another feed has
--     sent is seen, and none goes to the market twice.
--   * No row is read twice, and what is written is what was read under that lock. A trade that waits is written by
--     nobody else, but for the name of who ordered it (Trade-Update): the later one waits, and both changes stand.
-- A ticker is short and locks no other, so it makes no difference in which order a feed has them: they come as the tape
-- has them. Called alone it is a transaction by itself.
CREATE OR REPLACE FUNCTION brokerage.market_feed_ticker(
    p_symbol varchar(15), p_price numeric(8, 2), p_quantity integer, p_now timestamp(3)
)
RETURNS TABLE (trade_id bigint, quantity integer)
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE brokerage.last_trade
       SET lt_price = p_price,
           lt_dts = p_now,
           lt_vol = lt_vol + p_quantity
     WHERE lt_s_symb = p_symbol;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no last trade of %: run `stallmark check`', p_symbol;
    END IF;

    FOR trade_id, quantity IN
        SELECT tr_t_id, tr_qty
          FROM brokerage.trade_request
         WHERE tr_s_symb = p_symbol
           AND ((tr_tt_id = 'TSL' AND tr_bid_price >= p_price)
                OR (tr_tt_id = 'TLS' AND tr_bid_price <= p_price)
                OR (tr_tt_id = 'TLB' AND tr_bid_price >= p_price))
         ORDER BY tr_t_id
    LOOP
        UPDATE brokerage.trade SET t_dts = p_now, t_st_id = 'SBMT' WHERE t_id = trade_id;
        DELETE FROM brokerage.trade_request WHERE tr_t_id = trade_id;
        INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id) VALUES (trade_id, p_now, 'SBMT');
        RETURN NEXT;
    END LOOP;
END
$$;
