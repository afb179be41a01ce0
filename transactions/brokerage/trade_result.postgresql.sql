-- Trade-Result: an order has been executed at the market, so its trade is completed. Six frames, one transaction; they
-- neither begin nor commit: the caller does.
--
-- At READ COMMITTED, and yet with the outcome of SERIALIZABLE. PostgreSQL aborts a transaction whose snapshot is older
-- than the last change of a row that it writes, and the few rows of the brokers are changed by every Trade-Result; a
-- lock taken inside does not help, for the snapshot is older than the lock. SQL Server waits there. So do these locks:
--   * Frame 1 locks the trade and its account until the commit, and only then reads what the account holds: that is a
--     statement of its own, with a snapshot younger than the locks.
--   * Holdings, their summary and the balance are written by nobody who has not locked the account. The trade is
--     completed once, by whoever finds it SBMT under its lock; the rows of its history, settlement and payment come
--     into being with that. So from frame 1 to the commit nobody else changes what this transaction reads or writes
--     there: the Trade-Results of an account are one after the other, those of different accounts share no row but
--     the broker's.
--   * The broker's row is only added to, by one UPDATE that takes what was committed last: in whatever order that is
--     done the totals come out the same.
--   * Of what is only read, one thing changes in a run: which tax rates a customer has (Data-Maintenance). One statement
--     reads them. A change that commits after that has no part in this trade, and depends on no trade: the tables are
--     as if it had come after this one.
-- Rows are locked in the order trade, account, (summary, holdings: nobody waits there), broker: no circle.
-- FOR NO KEY UPDATE: who refers to the account with a new trade, by a foreign key, need not wait.
-- The broker is the hottest row of all, 100 customers share one. So the frame that adds to it, the fifth of TPC-E,
-- comes last here, after the sixth: the row is locked for the commit alone.

-- Frame 1: the trade, its type and account, and what the account holds of the security. No row: there is no such trade.
CREATE OR REPLACE FUNCTION brokerage.trade_result_trade(p_trade bigint)
RETURNS TABLE (
    state char(4), type char(3), type_name varchar, sells boolean, symbol varchar, quantity integer, lifo boolean,
    cash boolean, charge numeric, account bigint, broker bigint, customer bigint, tax_status smallint, held integer
)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM a.ca_id
       FROM brokerage.trade t
       JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
      WHERE t.t_id = p_trade
        FOR NO KEY UPDATE;

    RETURN QUERY
    SELECT t.t_st_id, t.t_tt_id, y.tt_name, y.tt_is_sell, t.t_s_symb, t.t_qty, t.t_lifo,
           t.t_is_cash, t.t_chrg, a.ca_id, a.ca_b_id, a.ca_c_id, a.ca_tax_st, COALESCE(s.hs_qty, 0)
      FROM brokerage.trade t
      JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
      JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
      LEFT JOIN brokerage.holding_summary s ON s.hs_ca_id = t.t_ca_id AND s.hs_s_symb = t.t_s_symb
     WHERE t.t_id = p_trade;
END
$$;
GO
-- Frame 2: what the trade does to the account's holdings of the security. Those of the other sign are used up first:
-- the newest first where the trade is LIFO, else the oldest, the last of them in part. What is left of the trade is a
-- holding of its own: sold without being held it is owed, below zero. Returns what the shares of the used-up holdings
-- were bought and sold for.
CREATE OR REPLACE FUNCTION brokerage.trade_result_holding(
    p_trade bigint, p_account bigint, p_symbol varchar, p_held integer, p_sells boolean, p_quantity integer,
    p_price numeric, p_moment timestamp, p_lifo boolean
)
RETURNS TABLE (buy_value numeric, sell_value numeric)
LANGUAGE plpgsql
AS $$
DECLARE
    direction CONSTANT integer := CASE WHEN p_sells THEN -1 ELSE 1 END;
    closed integer := 0;
    begun_for numeric(12, 2) := 0;
    next_one record;
    shares integer;
BEGIN
    IF p_held = 0 THEN
        INSERT INTO brokerage.holding_summary (hs_ca_id, hs_s_symb, hs_qty)
        VALUES (p_account, p_symbol, direction * p_quantity);
    ELSIF p_held = -direction * p_quantity THEN
        DELETE FROM brokerage.holding_summary
         WHERE hs_ca_id = p_account AND hs_s_symb = p_symbol;
    ELSE
        UPDATE brokerage.holding_summary
           SET hs_qty = hs_qty + direction * p_quantity
         WHERE hs_ca_id = p_account AND hs_s_symb = p_symbol;
    END IF;

    -- One after the other from the end of the index, and no more than are needed: there may be many.
    WHILE p_held * direction < 0 AND closed < p_quantity LOOP
        IF p_lifo THEN
            SELECT h.h_t_id, h.h_price, h.h_qty
              INTO next_one
              FROM brokerage.holding h
             WHERE h.h_ca_id = p_account AND h.h_s_symb = p_symbol
             ORDER BY h.h_dts DESC, h.h_t_id DESC
             LIMIT 1;
        ELSE
            SELECT h.h_t_id, h.h_price, h.h_qty
              INTO next_one
              FROM brokerage.holding h
             WHERE h.h_ca_id = p_account AND h.h_s_symb = p_symbol
             ORDER BY h.h_dts, h.h_t_id
             LIMIT 1;
        END IF;
        EXIT WHEN NOT FOUND;

        shares := CASE WHEN ABS(next_one.h_qty) <= p_quantity - closed THEN ABS(next_one.h_qty)
                       ELSE p_quantity - closed END;
        IF shares = ABS(next_one.h_qty) THEN
            DELETE FROM brokerage.holding WHERE h_t_id = next_one.h_t_id;
        ELSE
            UPDATE brokerage.holding SET h_qty = h_qty + direction * shares WHERE h_t_id = next_one.h_t_id;
        END IF;
        INSERT INTO brokerage.holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        VALUES (next_one.h_t_id, p_trade, next_one.h_qty, next_one.h_qty + direction * shares);
        closed := closed + shares;
        begun_for := begun_for + shares * next_one.h_price;
    END LOOP;

    IF closed < p_quantity THEN
        INSERT INTO brokerage.holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
        VALUES (p_trade, p_account, p_symbol, p_moment, p_price, direction * (p_quantity - closed));
        INSERT INTO brokerage.holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        VALUES (p_trade, p_trade, 0, direction * (p_quantity - closed));
    END IF;

    RETURN QUERY
    SELECT CASE WHEN p_sells THEN begun_for ELSE closed * p_price END,
           CASE WHEN p_sells THEN closed * p_price ELSE begun_for END;
END
$$;
GO
-- Frame 3, where the account is taxed and there is a gain: the tax on it, at all the customer's rates together, half a
-- cent rounded up.
CREATE OR REPLACE FUNCTION brokerage.trade_result_tax(
    p_trade bigint, p_customer bigint, p_buy_value numeric, p_sell_value numeric
)
RETURNS TABLE (tax numeric)
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY
    UPDATE brokerage.trade t
       SET t_tax = (SELECT ROUND((p_sell_value - p_buy_value) * SUM(r.tx_rate), 2)
                      FROM brokerage.customer_taxrate c
                      JOIN brokerage.taxrate r ON r.tx_id = c.cx_tx_id
                     WHERE c.cx_c_id = p_customer)
     WHERE t.t_id = p_trade
    RETURNING t.t_tax;
END
$$;
GO
-- Frame 4: the broker's commission, a percentage of the trade's value with half a cent rounded up, and the security's
-- name. The rate depends on the customer's tier, the type of the trade, the exchange and the number of shares.
CREATE OR REPLACE FUNCTION brokerage.trade_result_commission(
    p_customer bigint, p_symbol varchar, p_type char(3), p_quantity integer, p_price numeric
)
RETURNS TABLE (commission numeric, security_name varchar)
LANGUAGE sql
STABLE
AS $$
    SELECT ROUND(p_price * p_quantity * r.cr_rate * 0.01, 2), s.s_name
      FROM brokerage.customer c
      JOIN brokerage.security s ON s.s_symb = p_symbol
      JOIN brokerage.commission_rate r ON r.cr_c_tier = c.c_tier
                                      AND r.cr_tt_id = p_type
                                      AND r.cr_ex_id = s.s_ex_id
                                      AND p_quantity BETWEEN r.cr_from_qty AND r.cr_to_qty
     WHERE c.c_id = p_customer;
$$;
GO
-- Frame 6: how the trade is settled, and where it is paid in cash, the payment. Returns the account's balance. The
-- account is locked since frame 1.
CREATE OR REPLACE FUNCTION brokerage.trade_result_settlement(
    p_trade bigint, p_account bigint, p_moment timestamp, p_due date, p_amount numeric, p_cash boolean,
    p_paid_for varchar
)
RETURNS TABLE (balance numeric)
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO brokerage.settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
    VALUES (p_trade, CASE WHEN p_cash THEN 'Cash Account' ELSE 'Margin' END, p_due, p_amount);

    IF p_cash THEN
        UPDATE brokerage.customer_account
           SET ca_bal = ca_bal + p_amount
         WHERE ca_id = p_account;
        INSERT INTO brokerage.cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
        VALUES (p_trade, p_moment, p_amount, p_paid_for);
    END IF;

    RETURN QUERY
    SELECT a.ca_bal
      FROM brokerage.customer_account a
     WHERE a.ca_id = p_account;
END
$$;
GO
-- Frame 5, the last: the trade is completed, and counts for its broker. Returns how many trades the broker has; no row:
-- there is no such broker.
CREATE OR REPLACE FUNCTION brokerage.trade_result_completion(
    p_trade bigint, p_broker bigint, p_moment timestamp, p_price numeric, p_commission numeric
)
RETURNS TABLE (trades integer)
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE brokerage.trade
       SET t_st_id = 'CMPT', t_dts = p_moment, t_trade_price = p_price, t_comm = p_commission
     WHERE t_id = p_trade;
    INSERT INTO brokerage.trade_history (th_t_id, th_dts, th_st_id)
    VALUES (p_trade, p_moment, 'CMPT');

    RETURN QUERY
    UPDATE brokerage.broker b
       SET b_num_trades = b.b_num_trades + 1, b_comm_total = b.b_comm_total + p_commission
     WHERE b.b_id = p_broker
    RETURNING b.b_num_trades;
END
$$;
