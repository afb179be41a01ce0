-- Trade-Update: corrects what trades of the past say of themselves, in words that the next correction takes back, and
-- tells them as Trade-Lookup does, as they are afterwards.
-- Rows are locked in the order of trade ids, so that no two of these transactions wait for each other in a circle. They
-- are REPEATABLE READ: who meets a row that another one has changed since this one began, or is changing, cannot
-- continue with what it saw and ends with 40001 as soon as the other has committed, to be tried again by the client;
-- SQL Server would have it wait. Keys do not change, so references to the rows may be made meanwhile (NO KEY).

-- Frame 1: trades by their ids; an ' X ' between the names of who ordered them is put in, or taken out.
CREATE OR REPLACE FUNCTION brokerage.trade_update_executor(p_trades text)
RETURNS TABLE (
    t_id bigint, t_bid_price numeric, t_exec_name varchar, t_is_cash boolean, tt_is_mrkt boolean,
    t_trade_price numeric,
    se_amt numeric, se_cash_due_date date, se_cash_type varchar, ct_amt numeric, ct_dts timestamp, ct_name varchar,
    waiting timestamp, submitted timestamp, ended timestamp
)
LANGUAGE plpgsql
AS $$
DECLARE
    chosen bigint [];
BEGIN
    chosen := string_to_array(p_trades, ',')::bigint [];

    PERFORM
       FROM brokerage.trade AS t
      WHERE t.t_id = ANY (chosen)
      ORDER BY t.t_id
        FOR NO KEY UPDATE;

    UPDATE brokerage.trade AS t
       SET t_exec_name = CASE
               WHEN t.t_exec_name LIKE '% X %' THEN REPLACE(t.t_exec_name, ' X ', ' ')
               ELSE REPLACE(t.t_exec_name, ' ', ' X ')
           END
     WHERE t.t_id = ANY (chosen);

    RETURN QUERY
    SELECT t.t_id, t.t_bid_price, t.t_exec_name, t.t_is_cash, y.tt_is_mrkt, t.t_trade_price,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM brokerage.trade AS t
      JOIN brokerage.trade_type AS y ON y.tt_id = t.t_tt_id
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     WHERE t.t_id = ANY (chosen)
     ORDER BY t.t_id;
END
$$;

-- Frame 2: the first twenty of an account from a time on; how they are settled is said in the other of two words.
CREATE OR REPLACE FUNCTION brokerage.trade_update_cash_type(p_account bigint, p_since timestamp)
RETURNS TABLE (
    t_id bigint, t_dts timestamp, t_bid_price numeric, t_exec_name varchar, t_is_cash boolean,
    t_trade_price numeric,
    se_amt numeric, se_cash_due_date date, se_cash_type varchar, ct_amt numeric, ct_dts timestamp, ct_name varchar,
    waiting timestamp, submitted timestamp, ended timestamp
)
LANGUAGE plpgsql
AS $$
DECLARE
    chosen bigint [];
BEGIN
    chosen := ARRAY(
        SELECT t.t_id
          FROM brokerage.trade AS t
         WHERE t.t_ca_id = p_account
           AND t.t_dts >= p_since
         ORDER BY t.t_dts, t.t_id
         LIMIT 20
    );

    PERFORM
       FROM brokerage.settlement AS s
      WHERE s.se_t_id = ANY (chosen)
      ORDER BY s.se_t_id
        FOR NO KEY UPDATE;

    UPDATE brokerage.settlement AS s
       SET se_cash_type = CASE s.se_cash_type
               WHEN 'Cash Account' THEN 'Cash'
               WHEN 'Cash' THEN 'Cash Account'
               WHEN 'Margin Account' THEN 'Margin'
               WHEN 'Margin' THEN 'Margin Account'
               ELSE s.se_cash_type
           END
     WHERE s.se_t_id = ANY (chosen);

    RETURN QUERY
    SELECT t.t_id, t.t_dts, t.t_bid_price, t.t_exec_name, t.t_is_cash, t.t_trade_price,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM brokerage.trade AS t
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     WHERE t.t_id = ANY (chosen)
     ORDER BY t.t_dts, t.t_id;
END
$$;

-- Frame 3: the first twenty of a security from a time on; what was paid for is said with the other of two words.
-- Told with the names of type and security, of which what was paid for is made.
CREATE OR REPLACE FUNCTION brokerage.trade_update_cash_name(p_symbol varchar, p_since timestamp)
RETURNS TABLE (
    t_id bigint, t_dts timestamp, t_ca_id bigint, t_tt_id char, t_qty integer,
    t_exec_name varchar, t_is_cash boolean, t_trade_price numeric, tt_name varchar, s_name varchar,
    se_amt numeric, se_cash_due_date date, se_cash_type varchar, ct_amt numeric, ct_dts timestamp, ct_name varchar,
    waiting timestamp, submitted timestamp, ended timestamp
)
LANGUAGE plpgsql
AS $$
DECLARE
    chosen bigint [];
BEGIN
    chosen := ARRAY(
        SELECT t.t_id
          FROM brokerage.trade AS t
         WHERE t.t_s_symb = p_symbol
           AND t.t_dts >= p_since
         ORDER BY t.t_dts, t.t_id
         LIMIT 20
    );

    PERFORM
       FROM brokerage.cash_transaction AS c
      WHERE c.ct_t_id = ANY (chosen)
      ORDER BY c.ct_t_id
        FOR NO KEY UPDATE;

    UPDATE brokerage.cash_transaction AS c
       SET ct_name = CASE
               WHEN c.ct_name LIKE '% shares of %' THEN REPLACE(c.ct_name, ' shares of ', ' shares in ')
               ELSE REPLACE(c.ct_name, ' shares in ', ' shares of ')
           END
     WHERE c.ct_t_id = ANY (chosen);

    RETURN QUERY
    SELECT t.t_id, t.t_dts, t.t_ca_id, t.t_tt_id, t.t_qty, t.t_exec_name, t.t_is_cash, t.t_trade_price,
           y.tt_name, n.s_name,
           s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
           w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
      FROM brokerage.trade AS t
      JOIN brokerage.trade_type AS y ON y.tt_id = t.t_tt_id
      JOIN brokerage.security AS n ON n.s_symb = t.t_s_symb
      LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
      LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
      LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
      LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
      LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
     WHERE t.t_id = ANY (chosen)
     ORDER BY t.t_dts, t.t_id;
END
$$;
