-- Trade-Cleanup: limit orders that still wait are submitted and cancelled, and orders that the market has not answered
-- are cancelled. Returns how many of each.
-- A run's trades have ids from p_first_trade on and are found by their key; all before have ended. Nothing else runs
-- meanwhile, so the order of the tables' locks does not matter. It neither begins nor commits: the caller's statement
-- is the transaction.
CREATE OR REPLACE FUNCTION brokerage.trade_cleanup_cancel(p_first_trade bigint, p_now timestamp(3))
RETURNS TABLE (waited integer, unanswered integer)
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id)
    SELECT tr_t_id, p_now, 'SBMT' FROM brokerage.trade_request;

    DELETE FROM brokerage.trade_request;
    GET DIAGNOSTICS waited = ROW_COUNT;

    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id)
    SELECT t_id, p_now, 'CNCL'
      FROM brokerage.trade
     WHERE t_id >= p_first_trade
       AND t_st_id IN ('PNDG', 'SBMT');

    UPDATE brokerage.trade
       SET t_dts = p_now,
           t_st_id = 'CNCL'
     WHERE t_id >= p_first_trade
       AND t_st_id IN ('PNDG', 'SBMT');
    GET DIAGNOSTICS unanswered = ROW_COUNT;

    unanswered := unanswered - waited;
    RETURN NEXT;
END
$$;
