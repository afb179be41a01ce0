-- Trade-Result: an order has been executed at the market, so its trade is completed. Six frames, one transaction at
-- SERIALIZABLE; they neither begin nor commit (error 266): the caller does.
--
-- Frame 1 reads with UPDLOCK what is changed later. Two of one account then come one after the other; with shared locks
-- both would read, and each wait for the other when it is to write (a conversion deadlock). Nobody else waits for a
-- U lock but who wants to write as well. Rows are locked in the order trade, account, summary, holdings, broker: no
-- circle. Where a summary is missing, and behind the last holding, the gap to the next key is locked with it: that may
-- be a neighbour's, who has then locked nothing that this transaction still needs.
-- The broker is the hottest row of all, 100 customers share one. So the frame that adds to it, the fifth of TPC-E,
-- comes last here, after the sixth: the row is locked for the commit alone.

-- Frame 1: the trade, its type and account, and what the account holds of the security. No row: there is no such trade.
DROP PROCEDURE IF EXISTS brokerage.trade_result_trade;
GO
CREATE PROCEDURE brokerage.trade_result_trade
    @trade bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @account bigint;

    -- Apart from what follows, so that no plan comes to the summary before the account is locked.
    SELECT @account = a.ca_id
      FROM brokerage.trade AS t WITH (UPDLOCK)
      JOIN brokerage.customer_account AS a WITH (UPDLOCK) ON a.ca_id = t.t_ca_id
     WHERE t.t_id = @trade;

    SELECT t.t_st_id, t.t_tt_id, y.tt_name, y.tt_is_sell, t.t_s_symb, t.t_qty, t.t_lifo,
           t.t_is_cash, t.t_chrg, a.ca_id, a.ca_b_id, a.ca_c_id, a.ca_tax_st, COALESCE(s.hs_qty, 0) AS held
      FROM brokerage.trade AS t
      JOIN brokerage.trade_type AS y ON y.tt_id = t.t_tt_id
      JOIN brokerage.customer_account AS a ON a.ca_id = @account
      LEFT JOIN brokerage.holding_summary AS s WITH (UPDLOCK) ON s.hs_ca_id = @account AND s.hs_s_symb = t.t_s_symb
     WHERE t.t_id = @trade;
END;
GO
-- Frame 2: what the trade does to the account's holdings of the security. Those of the other sign are used up first:
-- the newest first where the trade is LIFO, else the oldest, the last of them in part. What is left of the trade is a
-- holding of its own: sold without being held it is owed, below zero. Returns what the shares of the used-up holdings
-- were bought and sold for.
DROP PROCEDURE IF EXISTS brokerage.trade_result_holding;
GO
CREATE PROCEDURE brokerage.trade_result_holding
    @trade bigint,
    @account bigint,
    @symbol varchar(15),
    @held integer,
    @sells bit,
    @quantity integer,
    @price decimal(8, 2),
    @moment datetime2(3),
    @lifo bit
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @direction integer = CASE WHEN @sells = 1 THEN -1 ELSE 1 END;
    DECLARE @closed integer = 0;
    DECLARE @begun_for decimal(12, 2) = 0;
    DECLARE @next bigint, @next_price decimal(8, 2), @next_quantity integer, @shares integer;

    IF @held = 0
        INSERT INTO brokerage.holding_summary (hs_ca_id, hs_s_symb, hs_qty)
        VALUES (@account, @symbol, @direction * @quantity);
    ELSE IF @held = -@direction * @quantity
        DELETE FROM brokerage.holding_summary
         WHERE hs_ca_id = @account AND hs_s_symb = @symbol;
    ELSE
        UPDATE brokerage.holding_summary
           SET hs_qty = hs_qty + @direction * @quantity
         WHERE hs_ca_id = @account AND hs_s_symb = @symbol;

    -- One after the other from the end of the index, and no more than are needed: there may be many.
    WHILE @held * @direction < 0 AND @closed < @quantity
    BEGIN
        SET @next = NULL;
        IF @lifo = 1
            SELECT TOP (1) @next = h.h_t_id, @next_price = h.h_price, @next_quantity = h.h_qty
              FROM brokerage.holding AS h WITH (UPDLOCK)
             WHERE h.h_ca_id = @account AND h.h_s_symb = @symbol
             ORDER BY h.h_dts DESC, h.h_t_id DESC;
        ELSE
            SELECT TOP (1) @next = h.h_t_id, @next_price = h.h_price, @next_quantity = h.h_qty
              FROM brokerage.holding AS h WITH (UPDLOCK)
             WHERE h.h_ca_id = @account AND h.h_s_symb = @symbol
             ORDER BY h.h_dts, h.h_t_id;
        IF @next IS NULL BREAK;

        SET @shares = CASE WHEN ABS(@next_quantity) <= @quantity - @closed THEN ABS(@next_quantity)
                           ELSE @quantity - @closed END;
        IF @shares = ABS(@next_quantity)
            DELETE FROM brokerage.holding WHERE h_t_id = @next;
        ELSE
            UPDATE brokerage.holding SET h_qty = h_qty + @direction * @shares WHERE h_t_id = @next;
        INSERT INTO brokerage.holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        VALUES (@next, @trade, @next_quantity, @next_quantity + @direction * @shares);
        SET @closed = @closed + @shares;
        SET @begun_for = @begun_for + @shares * @next_price;
    END;

    IF @closed < @quantity
    BEGIN
        INSERT INTO brokerage.holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
        VALUES (@trade, @account, @symbol, @moment, @price, @direction * (@quantity - @closed));
        INSERT INTO brokerage.holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        VALUES (@trade, @trade, 0, @direction * (@quantity - @closed));
    END;

    SELECT CASE WHEN @sells = 1 THEN @begun_for ELSE @closed * @price END AS buy_value,
           CASE WHEN @sells = 1 THEN @closed * @price ELSE @begun_for END AS sell_value;
END;
GO
-- Frame 3, where the account is taxed and there is a gain: the tax on it, at all the customer's rates together, half a
-- cent rounded up. The cast keeps all digits of the product, of which SQL Server would else round some away first.
DROP PROCEDURE IF EXISTS brokerage.trade_result_tax;
GO
CREATE PROCEDURE brokerage.trade_result_tax
    @trade bigint,
    @customer bigint,
    @buy_value decimal(12, 2),
    @sell_value decimal(12, 2)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    UPDATE brokerage.trade
       SET t_tax = (SELECT ROUND((@sell_value - @buy_value) * CAST(SUM(r.tx_rate) AS decimal(6, 5)), 2)
                      FROM brokerage.customer_taxrate AS c
                      JOIN brokerage.taxrate AS r ON r.tx_id = c.cx_tx_id
                     WHERE c.cx_c_id = @customer)
    OUTPUT inserted.t_tax
     WHERE t_id = @trade;
END;
GO
-- Frame 4: the broker's commission, a percentage of the trade's value with half a cent rounded up, and the security's
-- name. The rate depends on the customer's tier, the type of the trade, the exchange and the number of shares.
DROP PROCEDURE IF EXISTS brokerage.trade_result_commission;
GO
CREATE PROCEDURE brokerage.trade_result_commission
    @customer bigint,
    @symbol varchar(15),
    @type char(3),
    @quantity integer,
    @price decimal(8, 2)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT CAST(ROUND(@price * @quantity * r.cr_rate * 0.01, 2) AS decimal(10, 2)) AS commission, s.s_name
      FROM brokerage.customer AS c
      JOIN brokerage.security AS s ON s.s_symb = @symbol
      JOIN brokerage.commission_rate AS r ON r.cr_c_tier = c.c_tier
                                         AND r.cr_tt_id = @type
                                         AND r.cr_ex_id = s.s_ex_id
                                         AND @quantity BETWEEN r.cr_from_qty AND r.cr_to_qty
     WHERE c.c_id = @customer;
END;
GO
-- Frame 6: how the trade is settled, and where it is paid in cash, the payment. Returns the account's balance. The
-- account is locked since frame 1.
DROP PROCEDURE IF EXISTS brokerage.trade_result_settlement;
GO
CREATE PROCEDURE brokerage.trade_result_settlement
    @trade bigint,
    @account bigint,
    @moment datetime2(3),
    @due date,
    @amount decimal(10, 2),
    @cash bit,
    @paid_for varchar(100)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    INSERT INTO brokerage.settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
    VALUES (@trade, CASE WHEN @cash = 1 THEN 'Cash Account' ELSE 'Margin' END, @due, @amount);

    IF @cash = 1
    BEGIN
        UPDATE brokerage.customer_account
           SET ca_bal = ca_bal + @amount
         WHERE ca_id = @account;
        INSERT INTO brokerage.cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
        VALUES (@trade, @moment, @amount, @paid_for);
    END;

    SELECT a.ca_bal AS balance
      FROM brokerage.customer_account AS a
     WHERE a.ca_id = @account;
END;
GO
-- Frame 5, the last: the trade is completed, and counts for its broker. Returns how many trades the broker has; no row:
-- there is no such broker.
DROP PROCEDURE IF EXISTS brokerage.trade_result_completion;
GO
CREATE PROCEDURE brokerage.trade_result_completion
    @trade bigint,
    @broker bigint,
    @moment datetime2(3),
    @price decimal(8, 2),
    @commission decimal(10, 2)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    UPDATE brokerage.trade
       SET t_st_id = 'CMPT', t_dts = @moment, t_trade_price = @price, t_comm = @commission
     WHERE t_id = @trade;
    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id)
    VALUES (@trade, @moment, 'CMPT');

    UPDATE brokerage.broker
       SET b_num_trades = b_num_trades + 1, b_comm_total = b_comm_total + @commission
    OUTPUT inserted.b_num_trades
     WHERE b_id = @broker;
END;
