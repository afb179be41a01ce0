-- Trade-Update: corrects what trades of the past say of themselves, in words that the next correction takes back, and
-- tells them as Trade-Lookup does, as they are afterwards.
-- The ids are put in order first (by the key of @chosen), and the rows to be changed are found and locked in that
-- order, so that two that change the same rows do not wait for each other in a circle. They are REPEATABLE READ: trades
-- that were read stay locked (S) until the commit, so nobody changes them meanwhile; who meets a changed row (X) waits.
-- On PostgreSQL that one has to try again. Frames 2 and 3 find their trades in the order of time, which is nearly that
-- of the ids: in a rare case one of them and frame 1 wait in a circle, and the victim (1205) is tried again by the
-- client.

-- Frame 1: trades by their ids; an ' X ' between the names of who ordered them is put in, or taken out.
DROP PROCEDURE IF EXISTS brokerage.trade_update_executor;
GO
CREATE PROCEDURE brokerage.trade_update_executor
    @trades varchar(8000)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @chosen TABLE (t_id bigint NOT NULL PRIMARY KEY);

    INSERT INTO @chosen (t_id) SELECT CAST(value AS bigint) FROM STRING_SPLIT(@trades, ',');

    UPDATE t
       SET t_exec_name = CASE
               WHEN t.t_exec_name LIKE '% X %' THEN REPLACE(t.t_exec_name, ' X ', ' ')
               ELSE REPLACE(t.t_exec_name, ' ', ' X ')
           END
      FROM @chosen AS chosen
      JOIN brokerage.trade AS t ON t.t_id = chosen.t_id;

    SELECT t.t_id, t.t_bid_price, t.t_exec_name, t.t_is_cash, y.tt_is_mrkt, t.t_trade_price,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM @chosen AS chosen
      JOIN brokerage.trade AS t ON t.t_id = chosen.t_id
      JOIN brokerage.trade_type AS y ON y.tt_id = t.t_tt_id
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     ORDER BY t.t_id;
END;
GO
-- Frame 2: the first twenty of an account from a time on; how they are settled is said in the other of two words.
DROP PROCEDURE IF EXISTS brokerage.trade_update_cash_type;
GO
CREATE PROCEDURE brokerage.trade_update_cash_type
    @account bigint,
    @since datetime2(3)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @chosen TABLE (t_id bigint NOT NULL PRIMARY KEY);

    INSERT INTO @chosen (t_id)
    SELECT TOP (20) t_id
      FROM brokerage.trade
     WHERE t_ca_id = @account
       AND t_dts >= @since
     ORDER BY t_dts, t_id;

    UPDATE s
       SET se_cash_type = CASE s.se_cash_type
               WHEN 'Cash Account' THEN 'Cash'
               WHEN 'Cash' THEN 'Cash Account'
               WHEN 'Margin Account' THEN 'Margin'
               WHEN 'Margin' THEN 'Margin Account'
               ELSE s.se_cash_type
           END
      FROM @chosen AS chosen
      JOIN brokerage.settlement AS s ON s.se_t_id = chosen.t_id;

    SELECT t.t_id, t.t_dts, t.t_bid_price, t.t_exec_name, t.t_is_cash, t.t_trade_price,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM @chosen AS chosen
      JOIN brokerage.trade AS t ON t.t_id = chosen.t_id
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     ORDER BY t.t_dts, t.t_id;
END;
GO
-- Frame 3: the first twenty of a security from a time on; what was paid for is said with the other of two words.
-- Told with the names of type and security, of which what was paid for is made.
DROP PROCEDURE IF EXISTS brokerage.trade_update_cash_name;
GO
CREATE PROCEDURE brokerage.trade_update_cash_name
    @symbol varchar(15),
    @since datetime2(3)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @chosen TABLE (t_id bigint NOT NULL PRIMARY KEY);

    INSERT INTO @chosen (t_id)
    SELECT TOP (20) t_id
      FROM brokerage.trade
     WHERE t_s_symb = @symbol
       AND t_dts >= @since
     ORDER BY t_dts, t_id;

    UPDATE c
       SET ct_name = CASE
               WHEN c.ct_name LIKE '% shares of %' THEN REPLACE(c.ct_name, ' shares of ', ' shares in ')
               ELSE REPLACE(c.ct_name, ' shares in ', ' shares of ')
           END
      FROM @chosen AS chosen
      JOIN brokerage.cash_transaction AS c ON c.ct_t_id = chosen.t_id;

    SELECT t.t_id, t.t_dts, t.t_ca_id, t.t_tt_id, t.t_qty, t.t_exec_name, t.t_is_cash, t.t_trade_price,
           y.tt_name, n.s_name,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM @chosen AS chosen
      JOIN brokerage.trade AS t ON t.t_id = chosen.t_id
      JOIN brokerage.trade_type AS y ON y.tt_id = t.t_tt_id
      JOIN brokerage.security AS n ON n.s_symb = t.t_s_symb
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     ORDER BY t.t_dts, t.t_id;
END;
