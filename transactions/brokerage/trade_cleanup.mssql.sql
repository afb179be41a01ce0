-- Trade-Cleanup: limit orders that still wait are submitted and cancelled, and orders that the market has not answered
-- are cancelled. Returns how many of each.
-- A run's trades have ids from @first_trade on and are found by their key; all before have ended. Nothing else runs
-- meanwhile, so the order of the tables' locks does not matter. It neither begins nor commits (error 266): the calling
-- batch does.
DROP PROCEDURE IF EXISTS brokerage.trade_cleanup_cancel;
GO
CREATE PROCEDURE brokerage.trade_cleanup_cancel
    @first_trade bigint,
    @now datetime2(3)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @waited integer;
    DECLARE @unanswered integer;

    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id)
    SELECT tr_t_id, @now, 'SBMT' FROM brokerage.trade_request;

    DELETE FROM brokerage.trade_request;
    SET @waited = @@ROWCOUNT;

    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id)
    SELECT t_id, @now, 'CNCL'
      FROM brokerage.trade
     WHERE t_id >= @first_trade
       AND t_st_id IN ('PNDG', 'SBMT');

    UPDATE brokerage.trade
       SET t_dts = @now,
           t_st_id = 'CNCL'
     WHERE t_id >= @first_trade
       AND t_st_id IN ('PNDG', 'SBMT');
    SET @unanswered = @@ROWCOUNT;

    SELECT @waited AS waited, @unanswered - @waited AS unanswered;
END;
