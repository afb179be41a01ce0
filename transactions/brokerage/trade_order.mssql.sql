-- Trade-Order: an account orders to buy or sell a security; the trade is left submitted (market orders) or pending
-- (limit orders).
--
-- Isolation: REPEATABLE READ. What it has read stays locked to its end. It only reads rows of others and inserts rows
-- that nobody else has (the trade id is its own), so it never waits to turn a lock that it shares into a stronger one.
-- The account alone is read with UPDLOCK, first of all, as Trade-Result does: whoever completes a trade of the account
-- comes before or after, and does not change its holdings, which are read later, while it waits for the account.
-- The broker alone is not kept locked: its name and id never change, and every Trade-Result of its hundred customers
-- counts in its row (docs/locks.md).

-- Frame 1: the account, its owner and its broker.
DROP PROCEDURE IF EXISTS brokerage.trade_order_account;
GO
CREATE PROCEDURE brokerage.trade_order_account
    @account bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT a.ca_name, a.ca_tax_st, b.b_id, b.b_name, c.c_id, c.c_f_name, c.c_l_name, c.c_tier, c.c_tax_id
      FROM brokerage.customer_account a WITH (UPDLOCK)
      JOIN brokerage.customer c ON c.c_id = a.ca_c_id
      JOIN brokerage.broker b WITH (READCOMMITTED) ON b.b_id = a.ca_b_id
     WHERE a.ca_id = @account;
END;
GO
-- Frame 2, where another than the owner orders: the name under which that person may; no row for one who may not.
DROP PROCEDURE IF EXISTS brokerage.trade_order_executor;
GO
CREATE PROCEDURE brokerage.trade_order_executor
    @account bigint,
    @tax_id varchar(20)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT p.ap_f_name, p.ap_l_name
      FROM brokerage.account_permission p
     WHERE p.ap_ca_id = @account
       AND p.ap_tax_id = @tax_id;
END;
GO
-- Frame 3: what the order would bring and cost if it were executed at once, at its limit or else at the last price.
-- The security is named by its symbol, or by its company and issue. Nothing is changed; the trade's result does the
-- same again with the price that it gets. What is not found is null.
DROP PROCEDURE IF EXISTS brokerage.trade_order_estimate;
GO
CREATE PROCEDURE brokerage.trade_order_estimate
    @account bigint,
    @customer bigint,
    @tier smallint,
    @tax_status smallint,
    @symbol varchar(15),
    @company varchar(60),
    @issue varchar(6),
    @type char(3),
    @quantity integer,
    @lifo bit,
    @on_margin bit,
    @limit numeric(8, 2)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @found varchar(15), @security_name varchar(70), @company_name varchar(60), @exchange varchar(6),
            @market_price numeric(8, 2), @bid numeric(8, 2), @status char(4), @sells bit, @at_market bit,
            @held integer, @closed integer, @worth numeric(12, 2),
            @buy_value numeric(12, 2), @sell_value numeric(12, 2), @tax_rate numeric(6, 5), @tax numeric(10, 2),
            @commission_rate numeric(5, 2), @commission numeric(10, 2), @charge numeric(10, 2),
            @assets numeric(14, 2);

    IF @symbol IS NULL
        SELECT @found = s.s_symb, @security_name = s.s_name, @exchange = s.s_ex_id, @company_name = c.co_name
          FROM brokerage.company c
          JOIN brokerage.security s ON s.s_co_id = c.co_id
         WHERE c.co_name = @company
           AND s.s_issue = @issue;
    ELSE
        SELECT @found = s.s_symb, @security_name = s.s_name, @exchange = s.s_ex_id, @company_name = c.co_name
          FROM brokerage.security s
          JOIN brokerage.company c ON c.co_id = s.s_co_id
         WHERE s.s_symb = @symbol;

    SELECT @market_price = l.lt_price FROM brokerage.last_trade l WHERE l.lt_s_symb = @found;
    SELECT @sells = t.tt_is_sell, @at_market = t.tt_is_mrkt FROM brokerage.trade_type t WHERE t.tt_id = @type;
    SET @bid = CASE WHEN @at_market = 1 THEN @market_price ELSE @limit END;
    SET @status = CASE WHEN @at_market = 1 THEN 'SBMT' ELSE 'PNDG' END;

    SELECT @held = h.hs_qty
      FROM brokerage.holding_summary h
     WHERE h.hs_ca_id = @account
       AND h.hs_s_symb = @found;

    -- What is held with the other sign is closed first, from the newest on (LIFO) or the oldest (FIFO), up to the
    -- shares of the order: at its price now, at that of the holding then.
    SET @buy_value = 0.00;
    SET @sell_value = 0.00;
    IF (@sells = 1 AND @held > 0) OR (@sells = 0 AND @held < 0)
    BEGIN
        SELECT @closed = SUM(taken.shares), @worth = SUM(taken.shares * taken.h_price)
          FROM (SELECT q.h_price,
                       CASE WHEN q.before + q.shares <= @quantity THEN q.shares
                            ELSE @quantity - q.before END AS shares
                  FROM (SELECT h.h_price, ABS(h.h_qty) AS shares,
                               SUM(ABS(h.h_qty)) OVER (
                                   ORDER BY CASE WHEN @lifo = 1 THEN h.h_dts END DESC,
                                            CASE WHEN @lifo = 1 THEN h.h_t_id END DESC,
                                            h.h_dts, h.h_t_id
                                   ROWS UNBOUNDED PRECEDING) - ABS(h.h_qty) AS before
                          FROM brokerage.holding h
                         WHERE h.h_ca_id = @account
                           AND h.h_s_symb = @found) q
                 WHERE q.before < @quantity) taken;
        SET @buy_value = CASE WHEN @sells = 1 THEN @worth ELSE @closed * @bid END;
        SET @sell_value = CASE WHEN @sells = 1 THEN @closed * @bid ELSE @worth END;
    END;

    -- Gains are taxed at the sum of the customer's rates, unless the account is not taxed.
    SET @tax = 0.00;
    IF @tax_status IN (1, 2) AND @sell_value > @buy_value
    BEGIN
        SELECT @tax_rate = SUM(r.tx_rate)
          FROM brokerage.customer_taxrate c
          JOIN brokerage.taxrate r ON r.tx_id = c.cx_tx_id
         WHERE c.cx_c_id = @customer;
        SET @tax = ROUND((@sell_value - @buy_value) * @tax_rate, 2);
    END;

    SELECT @commission_rate = r.cr_rate
      FROM brokerage.commission_rate r
     WHERE r.cr_c_tier = @tier
       AND r.cr_tt_id = @type
       AND r.cr_ex_id = @exchange
       AND @quantity BETWEEN r.cr_from_qty AND r.cr_to_qty;
    SET @commission = ROUND(@bid * @quantity * @commission_rate * 0.01, 2);

    SELECT @charge = g.ch_chrg FROM brokerage.charge g WHERE g.ch_tt_id = @type AND g.ch_c_tier = @tier;

    -- Who orders on margin is asked what the account is worth: its cash, and all that it holds at the last prices.
    IF @on_margin = 1
    BEGIN
        SELECT @assets = a.ca_bal FROM brokerage.customer_account a WHERE a.ca_id = @account;
        SELECT @assets = @assets + COALESCE(SUM(h.hs_qty * l.lt_price), 0)
          FROM brokerage.holding_summary h
          JOIN brokerage.last_trade l ON l.lt_s_symb = h.hs_s_symb
         WHERE h.hs_ca_id = @account;
    END;

    SELECT @found AS symbol, @security_name AS security_name, @company_name AS company_name,
           @market_price AS market_price, @bid AS bid, @status AS status,
           @buy_value AS buy_value, @sell_value AS sell_value, @tax AS tax,
           @commission_rate AS commission_rate, @commission AS commission, @charge AS charge, @assets AS assets;
END;
GO
-- Frame 4: the trade, what a limit order waits for, and the first row of the trade's history. The commission is an
-- estimate until the trade is completed, and so far nothing is taxed.
DROP PROCEDURE IF EXISTS brokerage.trade_order_submit;
GO
CREATE PROCEDURE brokerage.trade_order_submit
    @trade bigint,
    @now datetime2(3),
    @status char(4),
    @type char(3),
    @is_cash bit,
    @symbol varchar(15),
    @quantity integer,
    @bid numeric(8, 2),
    @account bigint,
    @executor varchar(49),
    @charge numeric(10, 2),
    @commission numeric(10, 2),
    @lifo bit,
    @broker bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    INSERT INTO brokerage.trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id,
                                 t_exec_name, t_trade_price, t_chrg, t_comm, t_tax, t_lifo)
    VALUES (@trade, @now, @status, @type, @is_cash, @symbol, @quantity, @bid, @account,
            @executor, NULL, @charge, @commission, 0, @lifo);

    IF @status = 'PNDG'
        INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
        VALUES (@trade, @type, @symbol, @quantity, @bid, @broker);

    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id) VALUES (@trade, @now, @status);
END;
