-- Trade-Lookup: what became of trades of the past, told with their settlement, the cash that was paid (margin trades
-- have none) and when they were placed (only limit orders wait), submitted and ended.
-- Only reads, one statement each, so that nothing is locked longer than it is read.

-- Frame 1: by their ids.
CREATE OR REPLACE FUNCTION brokerage.trade_lookup_by_id(p_trades text)
RETURNS TABLE (
    t_id bigint, t_bid_price numeric, t_exec_name varchar, t_is_cash boolean, tt_is_mrkt boolean,
    t_trade_price numeric,
    se_amt numeric, se_cash_due_date date, se_cash_type varchar, ct_amt numeric, ct_dts timestamp, ct_name varchar,
    waiting timestamp, submitted timestamp, ended timestamp
)
LANGUAGE sql
STABLE
AS $$
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
 WHERE t.t_id = ANY (string_to_array(p_trades, ',')::bigint [])
 ORDER BY t.t_id
$$;

-- Frame 2: the first twenty of an account from a time on.
CREATE OR REPLACE FUNCTION brokerage.trade_lookup_by_account(p_account bigint, p_since timestamp)
RETURNS TABLE (
    t_id bigint, t_dts timestamp, t_bid_price numeric, t_exec_name varchar, t_is_cash boolean,
    t_trade_price numeric,
    se_amt numeric, se_cash_due_date date, se_cash_type varchar, ct_amt numeric, ct_dts timestamp, ct_name varchar,
    waiting timestamp, submitted timestamp, ended timestamp
)
LANGUAGE sql
STABLE
AS $$
SELECT t.t_id, t.t_dts, t.t_bid_price, t.t_exec_name, t.t_is_cash, t.t_trade_price,
       s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
       w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
  FROM (SELECT *
          FROM brokerage.trade
         WHERE t_ca_id = p_account
           AND t_dts >= p_since
         ORDER BY t_dts, t_id
         LIMIT 20) AS t
  LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
  LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
  LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
  LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
  LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
 ORDER BY t.t_dts, t.t_id
$$;

-- Frame 3: the first twenty of a security from a time on.
CREATE OR REPLACE FUNCTION brokerage.trade_lookup_by_symbol(p_symbol varchar, p_since timestamp)
RETURNS TABLE (
    t_id bigint, t_dts timestamp, t_ca_id bigint, t_tt_id char, t_qty integer,
    t_exec_name varchar, t_is_cash boolean, t_trade_price numeric,
    se_amt numeric, se_cash_due_date date, se_cash_type varchar, ct_amt numeric, ct_dts timestamp, ct_name varchar,
    waiting timestamp, submitted timestamp, ended timestamp
)
LANGUAGE sql
STABLE
AS $$
SELECT t.t_id, t.t_dts, t.t_ca_id, t.t_tt_id, t.t_qty, t.t_exec_name, t.t_is_cash, t.t_trade_price,
       s.se_amt, s.se_cash_due_date, s.se_cash_type, c.ct_amt, c.ct_dts, c.ct_name,
       w.th_dts AS waiting, m.th_dts AS submitted, e.th_dts AS ended
  FROM (SELECT *
          FROM brokerage.trade
         WHERE t_s_symb = p_symbol
           AND t_dts >= p_since
         ORDER BY t_dts, t_id
         LIMIT 20) AS t
  LEFT JOIN brokerage.settlement AS s ON s.se_t_id = t.t_id
  LEFT JOIN brokerage.cash_transaction AS c ON c.ct_t_id = t.t_id
  LEFT JOIN brokerage.trade_history AS w ON w.th_t_id = t.t_id AND w.th_st_id = 'PNDG'
  LEFT JOIN brokerage.trade_history AS m ON m.th_t_id = t.t_id AND m.th_st_id = 'SBMT'
  LEFT JOIN brokerage.trade_history AS e ON e.th_t_id = t.t_id AND e.th_st_id IN ('CMPT', 'CNCL')
 ORDER BY t.t_dts, t.t_id
$$;

-- Frame 4: the first trade of an account from a time on, and how the holdings that it changed have been changed, by
-- itself and by others: twenty rows at most.
CREATE OR REPLACE FUNCTION brokerage.trade_lookup_holdings(p_account bigint, p_since timestamp)
RETURNS TABLE (t_id bigint, hh_h_t_id bigint, hh_t_id bigint, hh_before_qty integer, hh_after_qty integer)
LANGUAGE sql
STABLE
AS $$
SELECT changed.hh_t_id AS t_id, h.hh_h_t_id, h.hh_t_id, h.hh_before_qty, h.hh_after_qty
  FROM brokerage.holding_history AS changed
  JOIN brokerage.holding_history AS h ON h.hh_h_t_id = changed.hh_h_t_id
 WHERE changed.hh_t_id = (SELECT t_id
                            FROM brokerage.trade
                           WHERE t_ca_id = p_account
                             AND t_dts >= p_since
                           ORDER BY t_dts, t_id
                           LIMIT 1)
 ORDER BY h.hh_h_t_id, h.hh_t_id
 LIMIT 20
$$;
