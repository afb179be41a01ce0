-- Trade-Order: an account orders to buy or sell a security; the trade is left submitted (market orders) or pending
-- (limit orders).
--
-- Isolation: REPEATABLE READ. It only reads rows of others and inserts rows that nobody else has (the trade id is its
-- own), so on its snapshot nothing can have changed that it would change: no abort follows (40001). The foreign keys
-- of what it inserts lock the account and the broker FOR KEY SHARE, which updates of a balance or a total neither wait
-- for nor make wait.

-- Frame 1: the account, its owner and its broker.
CREATE OR REPLACE FUNCTION brokerage.trade_order_account(p_account bigint)
RETURNS TABLE (
    account_name varchar, tax_status smallint, broker bigint, broker_name varchar,
    customer bigint, first_name varchar, last_name varchar, tier smallint, tax_id varchar
)
LANGUAGE sql STABLE
AS $$
    SELECT a.ca_name, a.ca_tax_st, b.b_id, b.b_name, c.c_id, c.c_f_name, c.c_l_name, c.c_tier, c.c_tax_id
      FROM brokerage.customer_account a
      JOIN brokerage.customer c ON c.c_id = a.ca_c_id
      JOIN brokerage.broker b ON b.b_id = a.ca_b_id
     WHERE a.ca_id = p_account;
$$;
GO
-- Frame 2, where another than the owner orders: the name under which that person may; no row for one who may not.
CREATE OR REPLACE FUNCTION brokerage.trade_order_executor(p_account bigint, p_tax_id varchar)
RETURNS TABLE (first_name varchar, last_name varchar)
LANGUAGE sql STABLE
AS $$
    SELECT p.ap_f_name, p.ap_l_name
      FROM brokerage.account_permission p
     WHERE p.ap_ca_id = p_account
       AND p.ap_tax_id = p_tax_id;
$$;
GO
-- Frame 3: what the order would bring and cost if it were executed at once, at its limit or else at the last price.
-- The security is named by its symbol, or by its company and issue. Nothing is changed; the trade's result does the
-- same again with the price that it gets. What is not found is null.
CREATE OR REPLACE FUNCTION brokerage.trade_order_estimate(
    p_account bigint, p_customer bigint, p_tier smallint, p_tax_status smallint,
    p_symbol varchar, p_company varchar, p_issue varchar,
    p_type char(3), p_quantity integer, p_lifo boolean, p_on_margin boolean, p_limit numeric,
    OUT symbol varchar, OUT security_name varchar, OUT company_name varchar,
    OUT market_price numeric, OUT bid numeric, OUT status varchar,
    OUT buy_value numeric, OUT sell_value numeric, OUT tax numeric,
    OUT commission_rate numeric, OUT commission numeric, OUT charge numeric, OUT assets numeric
)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    exchange varchar;
    sells boolean;
    at_market boolean;
    held integer;
    closed integer;
    worth numeric;
    tax_rate numeric;
BEGIN
    IF p_symbol IS NULL THEN
        SELECT s.s_symb, s.s_name, s.s_ex_id, c.co_name INTO symbol, security_name, exchange, company_name
          FROM brokerage.company c
          JOIN brokerage.security s ON s.s_co_id = c.co_id
         WHERE c.co_name = p_company
           AND s.s_issue = p_issue;
    ELSE
        SELECT s.s_symb, s.s_name, s.s_ex_id, c.co_name INTO symbol, security_name, exchange, company_name
          FROM brokerage.security s
          JOIN brokerage.company c ON c.co_id = s.s_co_id
         WHERE s.s_symb = p_symbol;
    END IF;

    SELECT l.lt_price INTO market_price FROM brokerage.last_trade l WHERE l.lt_s_symb = symbol;
    SELECT t.tt_is_sell, t.tt_is_mrkt INTO sells, at_market FROM brokerage.trade_type t WHERE t.tt_id = p_type;
    bid := CASE WHEN at_market THEN market_price ELSE p_limit END;
    status := CASE WHEN at_market THEN 'SBMT' ELSE 'PNDG' END;

    SELECT h.hs_qty INTO held
      FROM brokerage.holding_summary h
     WHERE h.hs_ca_id = p_account
       AND h.hs_s_symb = symbol;

    -- What is held with the other sign is closed first, from the newest on (LIFO) or the oldest (FIFO), up to the
    -- shares of the order: at its price now, at that of the holding then.
    buy_value := 0.00;
    sell_value := 0.00;
    IF (sells AND held > 0) OR (NOT sells AND held < 0) THEN
        SELECT SUM(taken.shares), SUM(taken.shares * taken.h_price) INTO closed, worth
          FROM (SELECT q.h_price,
                       CASE WHEN q.before + q.shares <= p_quantity THEN q.shares
                            ELSE p_quantity - q.before END AS shares
                  FROM (SELECT h.h_price, ABS(h.h_qty) AS shares,
                               SUM(ABS(h.h_qty)) OVER (
                                   ORDER BY CASE WHEN p_lifo THEN h.h_dts END DESC,
                                            CASE WHEN p_lifo THEN h.h_t_id END DESC,
                                            h.h_dts, h.h_t_id
                                   ROWS UNBOUNDED PRECEDING) - ABS(h.h_qty) AS before
                          FROM brokerage.holding h
                         WHERE h.h_ca_id = p_account
                           AND h.h_s_symb = symbol) q
                 WHERE q.before < p_quantity) taken;
        buy_value := CASE WHEN sells THEN worth ELSE closed * bid END;
        sell_value := CASE WHEN sells THEN closed * bid ELSE worth END;
    END IF;

    -- Gains are taxed at the sum of the customer's rates, unless the account is not taxed.
    tax := 0.00;
    IF p_tax_status IN (1, 2) AND sell_value > buy_value THEN
        SELECT SUM(r.tx_rate) INTO tax_rate
          FROM brokerage.customer_taxrate c
          JOIN brokerage.taxrate r ON r.tx_id = c.cx_tx_id
         WHERE c.cx_c_id = p_customer;
        tax := ROUND((sell_value - buy_value) * tax_rate, 2);
    END IF;

    SELECT r.cr_rate INTO commission_rate
      FROM brokerage.commission_rate r
     WHERE r.cr_c_tier = p_tier
       AND r.cr_tt_id = p_type
       AND r.cr_ex_id = exchange
       AND p_quantity BETWEEN r.cr_from_qty AND r.cr_to_qty;
    commission := ROUND(bid * p_quantity * commission_rate * 0.01, 2);

    SELECT g.ch_chrg INTO charge FROM brokerage.charge g WHERE g.ch_tt_id = p_type AND g.ch_c_tier = p_tier;

    -- Who orders on margin is asked what the account is worth: its cash, and all that it holds at the last prices.
    IF p_on_margin THEN
        SELECT a.ca_bal INTO assets FROM brokerage.customer_account a WHERE a.ca_id = p_account;
        SELECT assets + COALESCE(SUM(h.hs_qty * l.lt_price), 0) INTO assets
          FROM brokerage.holding_summary h
          JOIN brokerage.last_trade l ON l.lt_s_symb = h.hs_s_symb
         WHERE h.hs_ca_id = p_account;
    END IF;
END
$$;
GO
-- Frame 4: the trade, what a limit order waits for, and the first row of the trade's history. The commission is an
-- estimate until the trade is completed, and so far nothing is taxed.
CREATE OR REPLACE FUNCTION brokerage.trade_order_submit(
    p_trade bigint, p_now timestamp, p_status char(4), p_type char(3), p_is_cash boolean,
    p_symbol varchar, p_quantity integer, p_bid numeric, p_account bigint, p_executor varchar,
    p_charge numeric, p_commission numeric, p_lifo boolean, p_broker bigint
)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO brokerage.trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id,
                                 t_exec_name, t_trade_price, t_chrg, t_comm, t_tax, t_lifo)
    VALUES (p_trade, p_now, p_status, p_type, p_is_cash, p_symbol, p_quantity, p_bid, p_account,
            p_executor, NULL, p_charge, p_commission, 0, p_lifo);

    IF p_status = 'PNDG' THEN
        INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
        VALUES (p_trade, p_type, p_symbol, p_quantity, p_bid, p_broker);
    END IF;

    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id) VALUES (p_trade, p_now, p_status);
END
$$;
