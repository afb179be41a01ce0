-- Trade-Lookup: what became of trades of the past, told with their settlement, the cash that was paid (margin trades
-- have none) and when they were placed (only limit orders wait), submitted and ended.
-- Only reads, one statement each, so that nothing is locked longer than it is read.

-- Frame 1: by their ids.
DROP PROCEDURE IF EXISTS brokerage.trade_lookup_by_id;
GO
CREATE PROCEDURE brokerage.trade_lookup_by_id
    @trades varchar(8000)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT t.t_id, t.t_bid_price, t.t_exec_name, t.t_is_cash, y.tt_is_mrkt, t.t_trade_price,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM STRING_SPLIT(@trades, ',') AS wanted
      JOIN brokerage.trade AS t ON t.t_id = CAST(wanted.value AS bigint)
      JOIN brokerage.trade_type AS y ON y.tt_id = t.t_tt_id
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     ORDER BY t.t_id;
END;
GO
-- Frame 2: the first twenty of an account from a time on.
DROP PROCEDURE IF EXISTS brokerage.trade_lookup_by_account;
GO
CREATE PROCEDURE brokerage.trade_lookup_by_account
    @account bigint,
    @since datetime2(3)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT t.t_id, t.t_dts, t.t_bid_price, t.t_exec_name, t.t_is_cash, t.t_trade_price,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM (SELECT TOP (20) *
              FROM brokerage.trade
             WHERE t_ca_id = @account
               AND t_dts >= @since
             ORDER BY t_dts, t_id) AS t
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     ORDER BY t.t_dts, t.t_id;
END;
GO
-- Frame 3: the first twenty of a security from a time on.
DROP PROCEDURE IF EXISTS brokerage.trade_lookup_by_symbol;
GO
CREATE PROCEDURE brokerage.trade_lookup_by_symbol
    @symbol varchar(15),
    @since datetime2(3)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT t.t_id, t.t_dts, t.t_ca_id, t.t_tt_id, t.t_qty, t.t_exec_name, t.t_is_cash, t.t_trade_price,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM (SELECT TOP (20) *
              FROM brokerage.trade
             WHERE t_s_symb = @symbol
               AND t_dts >= @since
             ORDER BY t_dts, t_id) AS t
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     ORDER BY t.t_dts, t.t_id;
END;
GO
-- Frame 4: the first trade of an account from a time on, and how the holdings that it changed have been changed, by
-- itself and by others: twenty rows at most.
DROP PROCEDURE IF EXISTS brokerage.trade_lookup_holdings;
GO
CREATE PROCEDURE brokerage.trade_lookup_holdings
    @account bigint,
    @since datetime2(3)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT TOP (20) changed.hh_t_id AS t_id, h.hh_h_t_id, h.hh_t_id, h.hh_before_qty, h.hh_after_qty
      FROM brokerage.holding_history AS changed
      JOIN brokerage.holding_history AS h ON h.hh_h_t_id = changed.hh_h_t_id
     WHERE changed.hh_t_id = (SELECT TOP (1) t_id
                                FROM brokerage.trade
                               WHERE t_ca_id = @account
                                 AND t_dts >= @since
                               ORDER BY t_dts, t_id)
     ORDER BY h.hh_h_t_id, h.hh_t_id;
END;
