-- Consistency conditions: each query returns the offending rows, and `:name` is a number of the scale. In brackets:
-- `cheap` reads aggregates or small tables, others read large ones completely; `fresh` holds only until transactions
-- have run on the loaded database; `statistical` has a tolerance.

-- [broker_totals] a broker's totals are those of the completed trades
-- A broker's number of trades and commission are those of the completed trades in the broker's accounts.
SELECT b.b_id, t.ca_b_id AS trades_broker, b.b_num_trades, t.trades, b.b_comm_total, t.commission
  FROM brokerage.broker b
  FULL JOIN (SELECT a.ca_b_id, COUNT(*) AS trades, SUM(t.t_comm) AS commission
               FROM brokerage.trade t
               JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
              WHERE t.t_st_id = 'CMPT'
              GROUP BY a.ca_b_id) t ON t.ca_b_id = b.b_id
 WHERE b.b_id IS NULL
    OR b.b_num_trades <> COALESCE(t.trades, 0)
    OR b.b_comm_total <> COALESCE(t.commission, 0);

-- [holding_summary] an account's holdings add up, and so do their changes
-- What an account has of a security is the sum of its holdings, and these are the sum of all that trades changed.
SELECT COALESCE(s.hs_ca_id, h.h_ca_id, c.t_ca_id) AS account,
       COALESCE(s.hs_s_symb, h.h_s_symb, c.t_s_symb) AS symbol,
       s.hs_qty, h.held, c.changed
  FROM brokerage.holding_summary s
  FULL JOIN (SELECT h_ca_id, h_s_symb, SUM(CAST(h_qty AS bigint)) AS held
               FROM brokerage.holding
              GROUP BY h_ca_id, h_s_symb) h ON h.h_ca_id = s.hs_ca_id AND h.h_s_symb = s.hs_s_symb
  FULL JOIN (SELECT t.t_ca_id, t.t_s_symb, SUM(CAST(hh.hh_after_qty - hh.hh_before_qty AS bigint)) AS changed
               FROM brokerage.holding_history hh
               JOIN brokerage.trade t ON t.t_id = hh.hh_t_id
              GROUP BY t.t_ca_id, t.t_s_symb) c ON c.t_ca_id = s.hs_ca_id AND c.t_s_symb = s.hs_s_symb
 WHERE COALESCE(s.hs_qty, 0) <> COALESCE(h.held, 0)
    OR COALESCE(s.hs_qty, 0) <> COALESCE(c.changed, 0)
    OR s.hs_qty = 0;

-- [holding] a holding agrees with the trade that began it
-- A holding is what is left of the completed trade that began it: of its account, security, price, time and sign.
SELECT h.h_t_id, t.t_st_id, t.t_tt_id, h.h_ca_id, t.t_ca_id, h.h_s_symb, t.t_s_symb, h.h_price, t.t_trade_price,
       h.h_dts, t.t_dts, h.h_qty, t.t_qty
  FROM brokerage.holding h
  LEFT JOIN brokerage.trade t ON t.t_id = h.h_t_id
  LEFT JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
 WHERE y.tt_id IS NULL
    OR t.t_trade_price IS NULL
    OR t.t_st_id <> 'CMPT'
    OR h.h_ca_id <> t.t_ca_id
    OR h.h_s_symb <> t.t_s_symb
    OR h.h_price <> t.t_trade_price
    OR h.h_dts <> t.t_dts
    OR ABS(h.h_qty) > t.t_qty
    OR CASE WHEN h.h_qty < 0 THEN 1 ELSE 0 END <> CASE WHEN y.tt_is_sell = 'true' THEN 1 ELSE 0 END;

-- [holding_history] a holding's history leads to what is left of it
-- The history of a holding begins with the trade that it is named after, at 0, and leads to what is left of it: each
-- change begins with what the one before has left. So the changes add up to what is left, and their squares to its
-- square, which two wrong quantities that cancel each other out would not.
SELECT COALESCE(h.h_t_id, c.hh_h_t_id) AS holding, h.h_qty, c.left_over, c.left_over_squared, c.beginnings
  FROM brokerage.holding h
  FULL JOIN (SELECT hh_h_t_id,
                    SUM(CAST(hh_after_qty AS bigint) - hh_before_qty) AS left_over,
                    SUM(CAST(hh_after_qty AS bigint) * hh_after_qty
                        - CAST(hh_before_qty AS bigint) * hh_before_qty) AS left_over_squared,
                    SUM(CASE WHEN hh_t_id = hh_h_t_id AND hh_before_qty = 0 THEN 1 ELSE 0 END) AS beginnings
               FROM brokerage.holding_history
              GROUP BY hh_h_t_id) c ON c.hh_h_t_id = h.h_t_id
 WHERE c.hh_h_t_id IS NULL
    OR c.beginnings <> 1
    OR c.left_over <> COALESCE(h.h_qty, 0)
    OR c.left_over_squared <> COALESCE(CAST(h.h_qty AS bigint) * h.h_qty, 0);

-- [holding_changes] holdings begin with a trade, and others reduce them
-- A holding begins with the trade it is named after: above 0 with a purchase, below with a sale, by no more than the
-- shares of that trade. Later trades of the same account and security bring it nearer to 0, and not beyond.
SELECT h.hh_h_t_id, h.hh_t_id, h.hh_before_qty, h.hh_after_qty, b.its_sign, b.t_qty, b.t_ca_id AS account,
       c.t_ca_id AS account_of_change, b.t_s_symb AS symbol, c.t_s_symb AS symbol_of_change
  FROM brokerage.holding_history h
  LEFT JOIN (SELECT t.t_id, t.t_ca_id, t.t_s_symb, t.t_qty,
                    CASE WHEN y.tt_is_sell = 'true' THEN -1 ELSE 1 END AS its_sign
               FROM brokerage.trade t
               JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id) b ON b.t_id = h.hh_h_t_id
  LEFT JOIN brokerage.trade c ON c.t_id = h.hh_t_id
 WHERE b.t_id IS NULL
    OR c.t_id IS NULL
    OR c.t_ca_id <> b.t_ca_id
    OR c.t_s_symb <> b.t_s_symb
    OR CASE WHEN h.hh_t_id = h.hh_h_t_id
            THEN CASE WHEN h.hh_before_qty = 0
                       AND h.hh_after_qty * b.its_sign BETWEEN 1 AND b.t_qty THEN 1 ELSE 0 END
            ELSE CASE WHEN h.hh_before_qty * b.its_sign BETWEEN 1 AND b.t_qty
                       AND h.hh_after_qty * b.its_sign BETWEEN 0 AND h.hh_before_qty * b.its_sign - 1
                      THEN 1 ELSE 0 END
       END = 0;

-- [trade_lifo, fresh] the newest or the oldest holding is closed first
-- A trade that closes holdings takes the newest first where it is LIFO, else the oldest: of its account and security,
-- none is left open that was its turn before one that was taken. Machines whose clocks differ may mix up what is newest
-- later, so this holds for a database as it was loaded.
-- Each trade beside all that was open would take the square of the trades. So the changes are replayed first: a new
-- holding gets the slot behind the last one, a trade that is LIFO takes the last slot, another the first. There it must
-- find the holding that it changes, as the change before left it. Where one does not, all of them are compared.
SELECT t.t_id, t.t_lifo, t.t_dts, taken.t_id AS taken, taken.t_dts AS taken_since, other.t_id AS left_open,
       other.t_dts AS left_since, other.closed
  FROM (SELECT DISTINCT account, symbol
          FROM (SELECT slots.*,
                       LAG(hh_h_t_id) OVER (PARTITION BY account, symbol, slot ORDER BY turn) AS last_changed,
                       LAG(hh_after_qty) OVER (PARTITION BY account, symbol, slot ORDER BY turn) AS last_qty
                  FROM (SELECT ends.*,
                               CASE WHEN hh_before_qty <> 0 AND lifo = 0 THEN gone + 1 - closes
                                    ELSE last_one + lifo * closes END AS slot
                          FROM (SELECT changes.*,
                                       ROW_NUMBER() OVER (PARTITION BY account, symbol
                                                          ORDER BY t_dts, hh_t_id, begins, oldest, newest DESC) AS turn,
                                       SUM(begins - lifo * closes)
                                           OVER (PARTITION BY account, symbol
                                                 ORDER BY t_dts, hh_t_id, begins, oldest, newest DESC
                                                 ROWS UNBOUNDED PRECEDING) AS last_one,
                                       SUM((1 - lifo) * closes)
                                           OVER (PARTITION BY account, symbol
                                                 ORDER BY t_dts, hh_t_id, begins, oldest, newest DESC
                                                 ROWS UNBOUNDED PRECEDING) AS gone
                                  FROM (SELECT t.t_ca_id AS account, t.t_s_symb AS symbol, t.t_dts,
                                               h.hh_h_t_id, h.hh_t_id, h.hh_before_qty, h.hh_after_qty,
                                               CAST(t.t_lifo AS int) AS lifo,
                                               CASE WHEN t.t_lifo = 'false' THEN taken.t_dts END AS oldest,
                                               CASE WHEN t.t_lifo = 'true' THEN taken.t_dts END AS newest,
                                               CASE WHEN h.hh_before_qty = 0 THEN 1 ELSE 0 END AS begins,
                                               CASE WHEN h.hh_after_qty = 0 THEN 1 ELSE 0 END AS closes
                                          FROM brokerage.holding_history h
                                          JOIN brokerage.trade t ON t.t_id = h.hh_t_id
                                          JOIN brokerage.trade taken ON taken.t_id = h.hh_h_t_id) AS changes) AS ends
                       ) AS slots) AS replayed
         WHERE (hh_before_qty = 0 AND hh_h_t_id <> hh_t_id)
            OR (hh_before_qty <> 0
                AND (last_changed IS NULL OR last_changed <> hh_h_t_id OR last_qty <> hh_before_qty))) AS odd
  JOIN brokerage.trade t ON t.t_ca_id = odd.account AND t.t_s_symb = odd.symbol
  JOIN brokerage.holding_history h ON h.hh_t_id = t.t_id
  JOIN brokerage.trade taken ON taken.t_id = h.hh_h_t_id
  JOIN (SELECT b.t_id, b.t_ca_id, b.t_s_symb, b.t_dts, c.closed
          FROM brokerage.trade b
          JOIN brokerage.holding_history h ON h.hh_h_t_id = b.t_id AND h.hh_before_qty = 0
          LEFT JOIN (SELECT h.hh_h_t_id, t.t_dts AS closed
                       FROM brokerage.holding_history h
                       JOIN brokerage.trade t ON t.t_id = h.hh_t_id
                      WHERE h.hh_after_qty = 0) c ON c.hh_h_t_id = b.t_id) other
    ON other.t_ca_id = t.t_ca_id
   AND other.t_s_symb = t.t_s_symb
   AND other.t_dts < t.t_dts
   AND (other.closed IS NULL OR other.closed > t.t_dts)
   AND ((t.t_lifo = 'true' AND other.t_dts > taken.t_dts) OR (t.t_lifo = 'false' AND other.t_dts < taken.t_dts))
 WHERE h.hh_before_qty <> 0;

-- [trade_quantity] a trade changes holdings by the shares traded
-- A completed trade changes holdings by as many shares as were traded, and no other trade changes any.
SELECT COALESCE(t.t_id, h.hh_t_id) AS trade, t.t_tt_id, t.to_change, h.changed
  FROM (SELECT t.t_id, t.t_tt_id, CASE WHEN y.tt_is_sell = 'true' THEN -t.t_qty ELSE t.t_qty END AS to_change
          FROM brokerage.trade t
          JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
         WHERE t.t_st_id = 'CMPT') t
  FULL JOIN (SELECT hh_t_id, SUM(CAST(hh_after_qty - hh_before_qty AS bigint)) AS changed
               FROM brokerage.holding_history
              GROUP BY hh_t_id) h ON h.hh_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR h.hh_t_id IS NULL
    OR h.changed <> t.to_change;

-- [settlement] completed trades are settled with what they amount to
-- Completed trades, and no others, have a price and are settled: what was sold brings its value, what was bought costs
-- it; charge and commission go off, and the tax where the account is taxed at the source. The settlement says whether
-- it is paid in cash or on margin, each in one of two words.
SELECT COALESCE(t.t_id, s.se_t_id) AS trade, t.t_st_id, t.t_trade_price, t.amount, s.se_amt,
       t.t_is_cash, s.se_cash_type, t.t_dts, s.se_cash_due_date
  FROM (SELECT t.t_id, t.t_st_id, t.t_trade_price, t.t_is_cash, t.t_dts,
               CASE WHEN y.tt_is_sell = 'true' THEN 1 ELSE -1 END * t.t_qty * t.t_trade_price
               - t.t_chrg - t.t_comm - CASE WHEN a.ca_tax_st = 1 THEN t.t_tax ELSE 0 END AS amount
          FROM brokerage.trade t
          JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
          JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id) t
  FULL JOIN brokerage.settlement s ON s.se_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR CASE WHEN t.t_st_id = 'CMPT' THEN 1 ELSE 0 END <> CASE WHEN t.t_trade_price IS NULL THEN 0 ELSE 1 END
    OR CASE WHEN t.t_st_id = 'CMPT' THEN 1 ELSE 0 END <> CASE WHEN s.se_t_id IS NULL THEN 0 ELSE 1 END
    OR s.se_amt <> t.amount
    OR s.se_cash_due_date <= CAST(t.t_dts AS date)
    OR (t.t_is_cash = 'true' AND s.se_cash_type NOT IN ('Cash Account', 'Cash'))
    OR (t.t_is_cash = 'false' AND s.se_cash_type NOT IN ('Margin', 'Margin Account'));

-- [settlement_due, fresh] trades are settled two working days later
-- What is traded from Monday to Friday is settled two working days later; nothing is traded on other days. For this,
-- days are numbered through (in years that begin in March), so that the numbers of Mondays are multiples of seven.
-- Trading may go on on any day later, so this holds for a database as it was loaded.
SELECT traded, due, trades, MIN(day_number) % 7 AS weekday, MAX(day_number) - MIN(day_number) AS days_between
  FROM (SELECT traded, due, trades,
               1461 * (in_year + (in_month - 14) / 12) / 4
               + 367 * (in_month - 2 - (in_month - 14) / 12 * 12) / 12 + on_day + 5 AS day_number
          FROM (SELECT p.traded, p.due, p.trades,
                       CAST(SUBSTRING(CONCAT(p.traded, p.due), w.begins, 4) AS int) AS in_year,
                       CAST(SUBSTRING(CONCAT(p.traded, p.due), w.begins + 5, 2) AS int) AS in_month,
                       CAST(SUBSTRING(CONCAT(p.traded, p.due), w.begins + 8, 2) AS int) AS on_day
                  FROM (SELECT CAST(CAST(t.t_dts AS date) AS varchar(10)) AS traded,
                               CAST(s.se_cash_due_date AS varchar(10)) AS due,
                               COUNT(*) AS trades
                          FROM brokerage.trade t
                          JOIN brokerage.settlement s ON s.se_t_id = t.t_id
                         GROUP BY CAST(t.t_dts AS date), s.se_cash_due_date) AS p
                 CROSS JOIN (VALUES (1), (11)) AS w (begins)) AS parts) AS numbered
 GROUP BY traded, due, trades
HAVING MIN(day_number) % 7 > 4
    OR MAX(day_number) - MIN(day_number) <> CASE WHEN MIN(day_number) % 7 < 3 THEN 2 ELSE 4 END;

-- [cash_transaction] completed cash trades are paid as they are settled
-- A completed trade that is paid in cash, and no other, has a cash transaction: of the settled amount, at its time.
SELECT COALESCE(t.t_id, c.ct_t_id) AS trade, t.se_amt, c.ct_amt, t.t_dts, c.ct_dts
  FROM (SELECT t.t_id, t.t_dts, s.se_amt
          FROM brokerage.trade t
          LEFT JOIN brokerage.settlement s ON s.se_t_id = t.t_id
         WHERE t.t_st_id = 'CMPT'
           AND t.t_is_cash = 'true') t
  FULL JOIN brokerage.cash_transaction c ON c.ct_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR c.ct_t_id IS NULL
    OR t.se_amt IS NULL
    OR c.ct_amt <> t.se_amt
    OR c.ct_dts <> t.t_dts;

-- [account_balance] an account's balance is the sum of what was paid
SELECT a.ca_id, c.t_ca_id AS paid_account, a.ca_bal, c.paid
  FROM brokerage.customer_account a
  FULL JOIN (SELECT t.t_ca_id, SUM(c.ct_amt) AS paid
               FROM brokerage.cash_transaction c
               JOIN brokerage.trade t ON t.t_id = c.ct_t_id
              GROUP BY t.t_ca_id) c ON c.t_ca_id = a.ca_id
 WHERE a.ca_id IS NULL
    OR a.ca_bal <> COALESCE(c.paid, 0);

-- [charge_commission] charge and commission follow from the price list
-- What a trade costs follows from the price list: the charge from its type and the customer's tier; the commission, a
-- percentage of its value with half a cent rounded up, from the exchange and the number of shares as well. The
-- commission is known when a trade is completed.
SELECT t.t_id, t.t_st_id, t.t_chrg, g.ch_chrg, t.t_comm,
       ROUND(t.t_trade_price * t.t_qty * r.cr_rate * 0.01, 2) AS commission
  FROM brokerage.trade t
  LEFT JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
  LEFT JOIN brokerage.customer c ON c.c_id = a.ca_c_id
  LEFT JOIN brokerage.security s ON s.s_symb = t.t_s_symb
  LEFT JOIN brokerage.charge g ON g.ch_tt_id = t.t_tt_id AND g.ch_c_tier = c.c_tier
  LEFT JOIN brokerage.commission_rate r ON r.cr_tt_id = t.t_tt_id
                                       AND r.cr_c_tier = c.c_tier
                                       AND r.cr_ex_id = s.s_ex_id
                                       AND t.t_qty BETWEEN r.cr_from_qty AND r.cr_to_qty
 WHERE g.ch_tt_id IS NULL
    OR r.cr_tt_id IS NULL
    OR t.t_chrg <> g.ch_chrg
    OR (t.t_st_id = 'CMPT' AND t.t_comm <> ROUND(t.t_trade_price * t.t_qty * r.cr_rate * 0.01, 2));

-- [tax, fresh] tax follows from what a trade earned
-- A trade is taxed on what it earned by the holdings that it closed (sold for, less bought for), at the sum of the
-- customer's rates, with half a cent rounded up; not where it earned nothing, nor where the account is not taxed.
-- Customers get other rates later, so this holds for a database as it was loaded.
SELECT t.t_id, t.t_tax, a.ca_tax_st, e.earned, r.rate
  FROM brokerage.trade t
  JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
  LEFT JOIN (SELECT c.cx_c_id, CAST(SUM(x.tx_rate) AS decimal(6, 5)) AS rate
               FROM brokerage.customer_taxrate c
               JOIN brokerage.taxrate x ON x.tx_id = c.cx_tx_id
              GROUP BY c.cx_c_id) r ON r.cx_c_id = a.ca_c_id
  LEFT JOIN (SELECT h.hh_t_id,
                    CAST(SUM((h.hh_before_qty - h.hh_after_qty) * (o.t_trade_price - b.t_trade_price))
                         AS decimal(12, 2)) AS earned
               FROM brokerage.holding_history h
               JOIN brokerage.trade b ON b.t_id = h.hh_h_t_id
               JOIN brokerage.trade o ON o.t_id = h.hh_t_id
              WHERE h.hh_h_t_id <> h.hh_t_id
              GROUP BY h.hh_t_id) e ON e.hh_t_id = t.t_id
 WHERE r.rate IS NULL
    OR t.t_tax <> CASE WHEN a.ca_tax_st <> 0 AND e.earned > 0 THEN ROUND(e.earned * r.rate, 2) ELSE 0 END;

-- [trade_history] a trade's history has the states it has been in
-- The history of a trade has one row for each state that it has been in: a limit order waits first (PNDG), a market
-- order does not; what is not waiting was submitted (SBMT); in the end it is completed (CMPT) or canceled (CNCL).
-- The time of the trade is that of its completion.
SELECT COALESCE(t.t_id, h.th_t_id) AS trade, t.t_tt_id, t.t_st_id, h.pending, h.submitted, h.completed, h.canceled,
       t.t_dts, h.completed_at
  FROM (SELECT t.t_id, t.t_tt_id, t.t_st_id, t.t_dts, y.tt_is_mrkt
          FROM brokerage.trade t
          LEFT JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id) t
  FULL JOIN (SELECT th_t_id,
                    COUNT(*) AS states,
                    SUM(CASE WHEN th_st_id = 'PNDG' THEN 1 ELSE 0 END) AS pending,
                    SUM(CASE WHEN th_st_id = 'SBMT' THEN 1 ELSE 0 END) AS submitted,
                    SUM(CASE WHEN th_st_id = 'CMPT' THEN 1 ELSE 0 END) AS completed,
                    SUM(CASE WHEN th_st_id = 'CNCL' THEN 1 ELSE 0 END) AS canceled,
                    MAX(CASE WHEN th_st_id = 'CMPT' THEN th_dts END) AS completed_at
               FROM brokerage.trade_history
              GROUP BY th_t_id) h ON h.th_t_id = t.t_id
 WHERE t.t_id IS NULL
    OR h.th_t_id IS NULL
    OR t.tt_is_mrkt IS NULL
    OR h.pending <> CASE WHEN t.tt_is_mrkt = 'true' THEN 0 ELSE 1 END
    OR h.submitted <> CASE WHEN t.t_st_id = 'PNDG' THEN 0 ELSE 1 END
    OR h.completed <> CASE WHEN t.t_st_id = 'CMPT' THEN 1 ELSE 0 END
    OR h.canceled <> CASE WHEN t.t_st_id = 'CNCL' THEN 1 ELSE 0 END
    OR h.states <> h.pending + h.submitted + h.completed + h.canceled
    OR h.completed_at <> t.t_dts;

-- [trade_order, fresh] trades and their states follow each other in time
-- Trades are numbered in the order in which they were placed, inside each load unit, and no state of a trade begins
-- before the one it follows. Machines whose clocks differ may mix that up later, so this holds for a database as it
-- was loaded.
SELECT th_t_id, placed_before, placed, pending, submitted, ended
  FROM (SELECT th_t_id,
               LAG(MIN(th_dts)) OVER (PARTITION BY (th_t_id - CAST(200000000000001 AS bigint)) / :unit_trade_ids
                                      ORDER BY th_t_id) AS placed_before,
               MIN(th_dts) AS placed,
               MAX(CASE WHEN th_st_id = 'PNDG' THEN th_dts END) AS pending,
               MAX(CASE WHEN th_st_id = 'SBMT' THEN th_dts END) AS submitted,
               MAX(CASE WHEN th_st_id IN ('CMPT', 'CNCL') THEN th_dts END) AS ended
          FROM brokerage.trade_history
         GROUP BY th_t_id) AS histories
 WHERE placed < placed_before
    OR pending > submitted
    OR submitted > ended;

-- [trade_request] pending trades, and no others, have a request
-- Each pending limit trade, and no other, has a request that says the same.
SELECT COALESCE(r.tr_t_id, t.t_id) AS trade, t.t_st_id, r.tr_tt_id, t.t_tt_id, r.tr_s_symb, t.t_s_symb,
       r.tr_qty, t.t_qty, r.tr_bid_price, t.t_bid_price, r.tr_b_id, t.ca_b_id
  FROM brokerage.trade_request r
  FULL JOIN (SELECT t.t_id, t.t_st_id, t.t_tt_id, t.t_s_symb, t.t_qty, t.t_bid_price, y.tt_is_mrkt, a.ca_b_id
               FROM brokerage.trade t
               JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
               JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
              WHERE t.t_st_id = 'PNDG') t ON t.t_id = r.tr_t_id
 WHERE r.tr_t_id IS NULL
    OR t.t_id IS NULL
    OR t.tt_is_mrkt = 'true'
    OR r.tr_tt_id <> t.t_tt_id
    OR r.tr_s_symb <> t.t_s_symb
    OR r.tr_qty <> t.t_qty
    OR r.tr_bid_price <> t.t_bid_price
    OR r.tr_b_id <> t.ca_b_id;

-- [loaded_trades, fresh] as many trades as the scale says, all completed
-- There are as many trades as the scale says, all of them completed at a price from 20 to 30 dollars and asked for at
-- one, and no request waits.
SELECT what, expected, present
  FROM (SELECT 'trades' AS what, :trades AS expected, COALESCE(SUM(CAST(1 AS bigint)), 0) AS present
          FROM brokerage.trade
        UNION ALL
        SELECT 'completed at such prices', :trades, COALESCE(SUM(CAST(1 AS bigint)), 0)
          FROM brokerage.trade
         WHERE t_st_id = 'CMPT'
           AND t_trade_price BETWEEN 20 AND 30
           AND t_bid_price BETWEEN 20 AND 30
        UNION ALL
        SELECT 'trade requests', 0, COUNT(*)
          FROM brokerage.trade_request) AS counted
 WHERE present <> expected;

-- [trade_ids, fresh] trade ids lie in their load unit's range
-- Each load unit (1,000 customers) has its own range of trade ids, cut into blocks of 101 with 100 trades in each: one
-- id is left out, as by a trade that was rolled back. Only the last block of a load unit may have fewer.
SELECT first_id, load_unit, account_load_unit, trades
  FROM (SELECT MIN(t_id) AS first_id,
               (t_id - CAST(200000000000001 AS bigint)) / :unit_trade_ids AS load_unit,
               (t_ca_id - CAST(43000000001 AS bigint)) / 10000 AS account_load_unit,
               (t_id - CAST(200000000000001 AS bigint)) % :unit_trade_ids / 101 AS block,
               COUNT(*) AS trades
          FROM brokerage.trade
         GROUP BY (t_id - CAST(200000000000001 AS bigint)) / :unit_trade_ids,
                  (t_ca_id - CAST(43000000001 AS bigint)) / 10000,
                  (t_id - CAST(200000000000001 AS bigint)) % :unit_trade_ids / 101) AS blocks
 WHERE load_unit NOT BETWEEN 0 AND :units - 1
    OR load_unit <> account_load_unit
    OR trades <> CASE WHEN block = :unit_trade_ids / 101 - 1 THEN :unit_trades - 100 * block ELSE 100 END;

-- [loaded_names, fresh] trades are ordered and paid under their names
-- Trades are ordered by the owner of the account, and what is paid for is named after what was traded. Others order and
-- other names are given later, so this holds for a database as it was loaded.
SELECT t.t_id, t.t_exec_name, c.c_f_name, c.c_l_name, p.ct_name, y.tt_name, t.t_qty, s.s_name
  FROM brokerage.trade t
  JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
  JOIN brokerage.security s ON s.s_symb = t.t_s_symb
  JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
  JOIN brokerage.customer c ON c.c_id = a.ca_c_id
  LEFT JOIN brokerage.cash_transaction p ON p.ct_t_id = t.t_id
 WHERE t.t_exec_name <> CONCAT(c.c_f_name, ' ', c.c_l_name)
    OR p.ct_name <> CONCAT(y.tt_name, ' ', t.t_qty, ' shares of ', s.s_name);

-- [last_trade, fresh] last trades are at the end of the initial days
-- Securities were last traded when the initial trade days and all their trades had ended: at one time, at a price from
-- 20 to 30 dollars, and nothing since. The market goes on later, so this holds for a database as it was loaded.
SELECT l.lt_s_symb, l.lt_dts, t.last_completed, l.lt_price, l.lt_open_price, l.lt_vol
  FROM brokerage.last_trade l
  LEFT JOIN (SELECT t_s_symb, MAX(t_dts) AS last_completed
               FROM brokerage.trade
              GROUP BY t_s_symb) t ON t.t_s_symb = l.lt_s_symb
 WHERE l.lt_dts < t.last_completed
    OR l.lt_dts <> (SELECT MAX(lt_dts) FROM brokerage.last_trade)
    OR l.lt_price NOT BETWEEN 20 AND 30
    OR l.lt_open_price NOT BETWEEN 20 AND 30
    OR l.lt_vol <> 0;

-- [daily_market] every security has the days of its market
-- Every security has the market of all its weeks, five days each, and closes at a price between the lowest and the
-- highest of the day.
SELECT COALESCE(s.s_symb, d.dm_s_symb) AS symbol, CAST(NULL AS date) AS day, d.days AS present, d.wrong_prices
  FROM brokerage.security s
  FULL JOIN (SELECT dm_s_symb, COUNT(*) AS days,
                    SUM(CASE WHEN dm_close BETWEEN dm_low AND dm_high THEN 0 ELSE 1 END) AS wrong_prices
               FROM brokerage.daily_market
              GROUP BY dm_s_symb) d ON d.dm_s_symb = s.s_symb
 WHERE s.s_symb IS NULL
    OR d.dm_s_symb IS NULL
    OR d.days <> 5 * :market_weeks
    OR d.wrong_prices <> 0
UNION ALL
SELECT CAST(NULL AS varchar(15)), dm_date, COUNT(*), CAST(NULL AS int)
  FROM brokerage.daily_market
 GROUP BY dm_date
HAVING COUNT(*) <> :securities;

-- [security_year] a security's year is that of its market
-- A security knows the highest and the lowest price of the last year of its market (261 working days, or as many as
-- there are) and the first day of each; its yield is the dividend in percent of what it closed at in the end, cut off
-- after two digits.
SELECT s.s_symb, s.s_52wk_high, y.high, s.s_52wk_high_date, y.high_date, s.s_52wk_low, y.low, s.s_52wk_low_date,
       y.low_date, s.s_dividend, s.s_yield, y.close_price
  FROM brokerage.security s
  LEFT JOIN (SELECT d.dm_s_symb,
                    MAX(d.dm_high) AS high,
                    MIN(d.dm_low) AS low,
                    MIN(CASE WHEN d.dm_high = s.s_52wk_high THEN d.dm_date END) AS high_date,
                    MIN(CASE WHEN d.dm_low = s.s_52wk_low THEN d.dm_date END) AS low_date,
                    MAX(CASE WHEN d.dm_date = '2004-12-31' THEN d.dm_close END) AS close_price
               FROM brokerage.daily_market d
               JOIN brokerage.security s ON s.s_symb = d.dm_s_symb
              WHERE d.dm_date >= '2004-01-02'
              GROUP BY d.dm_s_symb) y ON y.dm_s_symb = s.s_symb
 WHERE y.close_price IS NULL
    OR s.s_52wk_high <> y.high
    OR s.s_52wk_high_date <> y.high_date
    OR s.s_52wk_low <> y.low
    OR s.s_52wk_low_date <> y.low_date
    OR s.s_yield * y.close_price > 100 * s.s_dividend
    OR (s.s_yield + 0.01) * y.close_price <= 100 * s.s_dividend;

-- [rows, cheap] other tables have the rows that the scale says
SELECT table_name, expected, present
  FROM (SELECT 'charge' AS table_name, 15 AS expected, COUNT(*) AS present FROM brokerage.charge
        UNION ALL SELECT 'commission_rate', 240, COUNT(*) FROM brokerage.commission_rate
        UNION ALL SELECT 'exchange', 4, COUNT(*) FROM brokerage.exchange
        UNION ALL SELECT 'industry', 102, COUNT(*) FROM brokerage.industry
        UNION ALL SELECT 'sector', 12, COUNT(*) FROM brokerage.sector
        UNION ALL SELECT 'status_type', 5, COUNT(*) FROM brokerage.status_type
        UNION ALL SELECT 'taxrate', 320, COUNT(*) FROM brokerage.taxrate
        UNION ALL SELECT 'trade_type', 5, COUNT(*) FROM brokerage.trade_type
        UNION ALL SELECT 'zip_code', 14741, COUNT(*) FROM brokerage.zip_code
        UNION ALL SELECT 'address', :customers + :companies + 4, COUNT(*) FROM brokerage.address
        UNION ALL SELECT 'customer', :customers, COUNT(*) FROM brokerage.customer
        UNION ALL SELECT 'customer_taxrate', 2 * :customers, COUNT(*) FROM brokerage.customer_taxrate
        UNION ALL SELECT 'customer_account', :accounts, COUNT(*) FROM brokerage.customer_account
        UNION ALL SELECT 'broker', :brokers, COUNT(*) FROM brokerage.broker
        UNION ALL SELECT 'watch_list', :customers, COUNT(*) FROM brokerage.watch_list
        UNION ALL SELECT 'company', :companies, COUNT(*) FROM brokerage.company
        UNION ALL SELECT 'company_competitor', 3 * :companies, COUNT(*) FROM brokerage.company_competitor
        UNION ALL SELECT 'financial', :quarters * :companies, COUNT(*) FROM brokerage.financial
        UNION ALL SELECT 'news_item', 2 * :companies, COUNT(*) FROM brokerage.news_item
        UNION ALL SELECT 'news_xref', 2 * :companies, COUNT(*) FROM brokerage.news_xref
        UNION ALL SELECT 'security', :securities, COUNT(*) FROM brokerage.security
        UNION ALL SELECT 'last_trade', :securities, COUNT(*) FROM brokerage.last_trade) AS counted
 WHERE present <> expected;

-- [types, cheap] states and types of trades are as known
-- States and types of trades are the five each that the transactions know by their identifiers.
SELECT COALESCE(known.id, present.id) AS id, known.name AS known_name, present.name,
       known.is_sell AS known_is_sell, present.is_sell, known.is_market AS known_is_market, present.is_market
  FROM (VALUES ('ACTV', 'Active', 0, 0),
               ('CMPT', 'Completed', 0, 0),
               ('CNCL', 'Canceled', 0, 0),
               ('PNDG', 'Pending', 0, 0),
               ('SBMT', 'Submitted', 0, 0),
               ('TMB', 'Market-Buy', 0, 1),
               ('TMS', 'Market-Sell', 1, 1),
               ('TLB', 'Limit-Buy', 0, 0),
               ('TLS', 'Limit-Sell', 1, 0),
               ('TSL', 'Stop-Loss', 1, 0)) AS known (id, name, is_sell, is_market)
  FULL JOIN (SELECT CAST(st_id AS varchar(4)) AS id, st_name AS name, 0 AS is_sell, 0 AS is_market
               FROM brokerage.status_type
             UNION ALL
             SELECT CAST(tt_id AS varchar(4)), tt_name, CAST(tt_is_sell AS int), CAST(tt_is_mrkt AS int)
               FROM brokerage.trade_type) AS present ON present.id = known.id
 WHERE known.id IS NULL
    OR present.id IS NULL
    OR present.name <> known.name
    OR present.is_sell <> known.is_sell
    OR present.is_market <> known.is_market;

-- [active, cheap] all are active, securities named after companies
-- All brokers, companies, customers and securities are active; a security is named after its company.
SELECT what, number, name, state
  FROM (SELECT 'broker' AS what, b_id AS number, b_name AS name, b_st_id AS state FROM brokerage.broker
        UNION ALL SELECT 'company', co_id, co_name, co_st_id FROM brokerage.company
        UNION ALL SELECT 'customer', c_id, c_l_name, c_st_id FROM brokerage.customer
        UNION ALL SELECT 'security', s_co_id, s_symb, s_st_id FROM brokerage.security) AS each_one
 WHERE state <> 'ACTV'
UNION ALL
SELECT 'security of a company', c.co_id, s.s_name, s.s_issue
  FROM brokerage.security s
  JOIN brokerage.company c ON c.co_id = s.s_co_id
 WHERE s.s_name <> CONCAT(c.co_name, CASE s.s_issue WHEN 'COMMON' THEN ' Common Stock' ELSE ' Preferred A' END);

-- [customers, cheap] a customer has one watch list and two tax rates
SELECT c.c_id, w.lists, x.rates
  FROM brokerage.customer c
  LEFT JOIN (SELECT wl_c_id, COUNT(*) AS lists
               FROM brokerage.watch_list
              GROUP BY wl_c_id) w ON w.wl_c_id = c.c_id
  LEFT JOIN (SELECT cx_c_id, COUNT(*) AS rates
               FROM brokerage.customer_taxrate
              GROUP BY cx_c_id) x ON x.cx_c_id = c.c_id
 WHERE COALESCE(w.lists, 0) <> 1
    OR COALESCE(x.rates, 0) <> 2;

-- [tiers, cheap] tiers have the customers and accounts they should
-- Each load unit (1,000 customers) has 200, 600 and 200 customers in its tiers, with 500, 3,000 and 1,500 accounts.
SELECT load_unit, c_tier, customers, accounts
  FROM (SELECT (c.c_id - CAST(4300000001 AS bigint)) / 1000 AS load_unit, c.c_tier,
               COUNT(*) AS customers, SUM(a.accounts) AS accounts
          FROM brokerage.customer c
          LEFT JOIN (SELECT ca_c_id, COUNT(*) AS accounts
                       FROM brokerage.customer_account
                      GROUP BY ca_c_id) a ON a.ca_c_id = c.c_id
         GROUP BY (c.c_id - CAST(4300000001 AS bigint)) / 1000, c.c_tier) AS tiers
 WHERE load_unit NOT BETWEEN 0 AND :units - 1
    OR customers <> CASE c_tier WHEN 1 THEN 200 WHEN 2 THEN 600 ELSE 200 END
    OR COALESCE(accounts, 0) <> CASE c_tier WHEN 1 THEN 500 WHEN 2 THEN 3000 ELSE 1500 END;

-- [accounts, cheap] a customer has the accounts that the tier allows
-- A customer of tier 1, 2 or 3 has 1 to 4, 2 to 8 or 5 to 10 accounts; these are numbered through after the customer's
-- number, and their brokers, ten to 1,000 customers, are of the same load unit.
SELECT c.c_id, c.c_tier, a.accounts, a.of_others, a.with_far_brokers
  FROM brokerage.customer c
  FULL JOIN (SELECT ca_c_id,
                    COUNT(*) AS accounts,
                    SUM(CASE WHEN (ca_id - 1) / 10 + 1 <> ca_c_id THEN 1 ELSE 0 END) AS of_others,
                    SUM(CASE WHEN (ca_b_id - CAST(4300000001 AS bigint)) / 10
                                  <> (ca_c_id - CAST(4300000001 AS bigint)) / 1000
                             THEN 1 ELSE 0 END) AS with_far_brokers
               FROM brokerage.customer_account
              GROUP BY ca_c_id) a ON a.ca_c_id = c.c_id
 WHERE c.c_id IS NULL
    OR a.ca_c_id IS NULL
    OR a.accounts NOT BETWEEN CASE c.c_tier WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 5 END
                          AND CASE c.c_tier WHEN 1 THEN 4 WHEN 2 THEN 8 ELSE 10 END
    OR a.of_others <> 0
    OR a.with_far_brokers <> 0;

-- [account_permission, cheap] one to three may trade, the owner among them
-- One to three people may trade in an account; its owner is one of them, under the own name.
SELECT COALESCE(a.ca_id, p.ap_ca_id) AS account, p.people, p.owners
  FROM brokerage.customer_account a
  FULL JOIN (SELECT p.ap_ca_id, COUNT(*) AS people, COUNT(c.c_id) AS owners
               FROM brokerage.account_permission p
               LEFT JOIN brokerage.customer_account a ON a.ca_id = p.ap_ca_id
               LEFT JOIN brokerage.customer c ON c.c_id = a.ca_c_id
                                             AND c.c_tax_id = p.ap_tax_id
                                             AND c.c_l_name = p.ap_l_name
                                             AND c.c_f_name = p.ap_f_name
              GROUP BY p.ap_ca_id) p ON p.ap_ca_id = a.ca_id
 WHERE a.ca_id IS NULL
    OR p.ap_ca_id IS NULL
    OR p.people > 3
    OR p.owners <> 1;

-- [watch_items, cheap] a watch list has the securities that it should
-- A watch list has 50 to 150 securities, or fewer in a small database: how many follows from the customer's number.
SELECT COALESCE(l.wl_id, i.wi_wl_id) AS watch_list, i.items
  FROM brokerage.watch_list l
  FULL JOIN (SELECT wi_wl_id, COUNT(*) AS items
               FROM brokerage.watch_item
              GROUP BY wi_wl_id) i ON i.wi_wl_id = l.wl_id
 WHERE l.wl_id IS NULL
    OR i.wi_wl_id IS NULL
    OR i.items <> :fewest_watched
                   + (l.wl_c_id - CAST(4300000001 AS bigint)) * 103 % (:most_watched - :fewest_watched + 1);

-- [addresses, cheap] an address belongs to one who lives there
-- Each address is that of one customer, one company or one exchange.
SELECT COALESCE(a.ad_id, o.ad_id) AS address, o.owners
  FROM brokerage.address a
  FULL JOIN (SELECT ad_id, COUNT(*) AS owners
               FROM (SELECT c_ad_id AS ad_id FROM brokerage.customer
                     UNION ALL SELECT co_ad_id FROM brokerage.company
                     UNION ALL SELECT ex_ad_id FROM brokerage.exchange) AS each_owner
              GROUP BY ad_id) o ON o.ad_id = a.ad_id
 WHERE a.ad_id IS NULL
    OR o.ad_id IS NULL
    OR o.owners <> 1;

-- [companies, cheap] a company has its figures, competitors and news
-- A company has figures of as many quarters as the scale says, three other companies as competitors in its own
-- industry, and two news.
SELECT c.co_id, f.quarters, k.competitors, k.elsewhere, n.news
  FROM brokerage.company c
  LEFT JOIN (SELECT fi_co_id, COUNT(*) AS quarters
               FROM brokerage.financial
              GROUP BY fi_co_id) f ON f.fi_co_id = c.co_id
  LEFT JOIN (SELECT p.cp_co_id, COUNT(DISTINCT p.cp_comp_co_id) AS competitors,
                    SUM(CASE WHEN p.cp_in_id = o.co_in_id AND p.cp_in_id = r.co_in_id AND r.co_id <> o.co_id
                             THEN 0 ELSE 1 END) AS elsewhere
               FROM brokerage.company_competitor p
               LEFT JOIN brokerage.company o ON o.co_id = p.cp_co_id
               LEFT JOIN brokerage.company r ON r.co_id = p.cp_comp_co_id
              GROUP BY p.cp_co_id) k ON k.cp_co_id = c.co_id
  LEFT JOIN (SELECT nx_co_id, COUNT(*) AS news
               FROM brokerage.news_xref
              GROUP BY nx_co_id) n ON n.nx_co_id = c.co_id
 WHERE COALESCE(f.quarters, 0) <> :quarters
    OR COALESCE(k.competitors, 0) <> 3
    OR k.elsewhere <> 0
    OR COALESCE(n.news, 0) <> 2;

-- [financial, cheap] a company's figures follow from each other
-- A company's figures are those of the quarters of 2000 to 2004; each begins on its first day, which is moved by one
-- and back later. What is earned follows from revenue and margin, and per share from the shares, in cents that are cut
-- off downwards; what is in stock, owned and owed is in proportion.
SELECT f.fi_co_id, f.fi_year, f.fi_qtr, f.fi_qtr_start_date, f.fi_revenue, f.fi_margin, f.fi_net_earn,
       f.fi_out_basic, f.fi_basic_eps, f.fi_out_dilut, f.fi_dilut_eps, f.fi_inventory, f.fi_assets, f.fi_liability
  FROM brokerage.financial f
  LEFT JOIN (VALUES (1, '-01-0'), (2, '-04-0'), (3, '-07-0'), (4, '-10-0')) AS q (qtr, begins) ON q.qtr = f.fi_qtr
 WHERE q.qtr IS NULL
    OR f.fi_year NOT BETWEEN 2000 AND 2004
    OR CAST(f.fi_qtr_start_date AS varchar(10)) NOT IN (CONCAT(f.fi_year, q.begins, '1'),
                                                        CONCAT(f.fi_year, q.begins, '2'))
    OR f.fi_revenue NOT BETWEEN 1000000 AND 1000000000
    OR f.fi_margin NOT BETWEEN -5 AND 25
    OR f.fi_net_earn * 100 > f.fi_revenue * f.fi_margin
    OR (f.fi_net_earn + 0.01) * 100 <= f.fi_revenue * f.fi_margin
    OR f.fi_out_dilut <> f.fi_out_basic + f.fi_out_basic / 10
    OR f.fi_basic_eps * f.fi_out_basic > f.fi_net_earn
    OR (f.fi_basic_eps + 0.01) * f.fi_out_basic <= f.fi_net_earn
    OR f.fi_dilut_eps * f.fi_out_dilut > f.fi_net_earn
    OR (f.fi_dilut_eps + 0.01) * f.fi_out_dilut <= f.fi_net_earn
    OR f.fi_inventory NOT BETWEEN 0 AND 0.29 * f.fi_revenue
    OR f.fi_assets NOT BETWEEN f.fi_revenue AND 4.99 * f.fi_revenue
    OR f.fi_liability NOT BETWEEN 0.20 * f.fi_assets - 0.01 AND 0.79 * f.fi_assets;

-- [industries, cheap] industries belong to sectors, companies to industries
-- An industry is one of eight or nine of a sector, after which it is named, and has its share of the companies.
SELECT i.in_id, s.sc_id, i.in_name, s.sc_name, i.of_sector, i.companies
  FROM brokerage.sector s
  FULL JOIN (SELECT i.in_id, i.in_name, i.in_sc_id, c.companies,
                    COUNT(*) OVER (PARTITION BY i.in_sc_id) AS of_sector
               FROM brokerage.industry i
               LEFT JOIN (SELECT co_in_id, COUNT(*) AS companies
                            FROM brokerage.company
                           GROUP BY co_in_id) c ON c.co_in_id = i.in_id) i ON i.in_sc_id = s.sc_id
 WHERE s.sc_id IS NULL
    OR i.in_id IS NULL
    OR i.in_name NOT LIKE CONCAT(s.sc_name, ' %')
    OR i.of_sector NOT BETWEEN 8 AND 9
    OR COALESCE(i.companies, 0) NOT BETWEEN :companies / 102 AND :companies / 102 + 1;

-- [news, cheap] a news item says something about one company
-- Each news item is about one company, says something, and is of 2004 or, as times are moved by a day and back later,
-- of the day after.
SELECT COALESCE(i.ni_id, x.nx_ni_id) AS news_item, x.companies, i.ni_headline, i.ni_dts
  FROM brokerage.news_item i
  FULL JOIN (SELECT nx_ni_id, COUNT(*) AS companies
               FROM brokerage.news_xref
              GROUP BY nx_ni_id) x ON x.nx_ni_id = i.ni_id
 WHERE i.ni_id IS NULL
    OR x.nx_ni_id IS NULL
    OR x.companies <> 1
    OR i.ni_headline = ''
    OR i.ni_summary = ''
    OR SUBSTRING(i.ni_item, 1, 1) = ''
    OR i.ni_source = ''
    OR i.ni_dts < '2004-01-01'
    OR i.ni_dts >= '2005-01-02';

-- [securities, cheap] securities have a last trade, a company, an exchange
-- A security has one last trade, a company has one or two securities, and an exchange knows how many it lists. As many
-- shares are out as the company's figures say, and a tenth of that of its preferred stock.
SELECT 'last trade' AS what, COALESCE(s.s_symb, l.lt_s_symb) AS name,
       CAST(NULL AS int) AS expected, CAST(NULL AS bigint) AS present
  FROM brokerage.security s
  FULL JOIN brokerage.last_trade l ON l.lt_s_symb = s.s_symb
 WHERE s.s_symb IS NULL
    OR l.lt_s_symb IS NULL
UNION ALL
SELECT 'securities of a company', c.co_name, 1, s.securities
  FROM brokerage.company c
  LEFT JOIN (SELECT s_co_id, COUNT(*) AS securities
               FROM brokerage.security
              GROUP BY s_co_id) s ON s.s_co_id = c.co_id
 WHERE COALESCE(s.securities, 0) NOT BETWEEN 1 AND 2
UNION ALL
SELECT 'securities at an exchange', e.ex_id, e.ex_num_symb, s.securities
  FROM brokerage.exchange e
  LEFT JOIN (SELECT s_ex_id, COUNT(*) AS securities
               FROM brokerage.security
              GROUP BY s_ex_id) s ON s.s_ex_id = e.ex_id
 WHERE COALESCE(s.securities, 0) <> e.ex_num_symb
UNION ALL
SELECT DISTINCT 'shares of a security', s.s_symb, f.fi_out_basic, s.s_num_out
  FROM brokerage.security s
  JOIN brokerage.financial f ON f.fi_co_id = s.s_co_id
 WHERE s.s_num_out <> CASE WHEN s.s_issue = 'COMMON' THEN f.fi_out_basic ELSE f.fi_out_basic / 10 END;

-- [trade_shares, statistical, fresh] trades are of all kinds in their shares
-- Trades are of all types, quantities, tiers of customers and ways to pay in the shares they were drawn with.
-- Allowed: five standard deviations of such a draw, and 1 in 10,000 for shares that were drawn in 16,384ths.
SELECT what, share, present, total
  FROM (SELECT expected.what, expected.share, SUM(kinds.trades) AS total,
               SUM(CASE WHEN expected.what IN (CONCAT('type ', kinds.t_tt_id), CONCAT('quantity ', kinds.t_qty),
                                               CONCAT('tier ', kinds.c_tier), CONCAT('LIFO ', kinds.lifo),
                                               CONCAT('cash ', kinds.cash))
                        THEN kinds.trades ELSE 0 END) AS present
          FROM (VALUES ('type TMB', 0.30), ('type TMS', 0.30), ('type TLB', 0.20), ('type TLS', 0.10),
                       ('type TSL', 0.10),
                       ('quantity 100', 0.25), ('quantity 200', 0.25), ('quantity 400', 0.25),
                       ('quantity 800', 0.25),
                       ('tier 1', 0.10), ('tier 2', 0.60), ('tier 3', 0.30),
                       ('LIFO 1', 0.35), ('cash 1', 0.92)) AS expected (what, share)
         CROSS JOIN (SELECT t.t_tt_id, t.t_qty, c.c_tier,
                            CAST(t.t_lifo AS int) AS lifo,
                            CAST(t.t_is_cash AS int) AS cash,
                            SUM(CAST(1 AS bigint)) AS trades
                       FROM brokerage.trade t
                       JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
                       JOIN brokerage.customer c ON c.c_id = a.ca_c_id
                      GROUP BY t.t_tt_id, t.t_qty, c.c_tier, t.t_lifo, t.t_is_cash) AS kinds
         GROUP BY expected.what, expected.share) AS shares
 WHERE ABS(present - total * share) > 5 * SQRT(total * share * (1 - share)) + 0.0001 * total;

-- [history_per_trade, statistical, fresh] a trade changes 1 to 1.36 holdings
-- A trade changes one holding on the first day, and 1.34 on average when there are many. Allowed: 1 to 1.36.
SELECT trades, changes
  FROM (SELECT COALESCE(SUM(CAST(1 AS bigint)), 0) AS trades FROM brokerage.trade WHERE t_st_id = 'CMPT') AS t
 CROSS JOIN (SELECT COALESCE(SUM(CAST(1 AS bigint)), 0) AS changes FROM brokerage.holding_history) AS h
 WHERE changes NOT BETWEEN trades AND 1.36 * trades;

-- [account_shares, cheap, statistical, fresh] permissions and tax status in their shares
-- 60, 38 and 2 % of the accounts are open to one, two and three people; 20, 50 and 30 % have tax status 0, 1 and 2.
-- Allowed: five standard deviations of such a draw.
SELECT what, share, present, total
  FROM (SELECT expected.what, expected.share, SUM(kinds.accounts) AS total,
               SUM(CASE WHEN expected.what IN (CONCAT('tax status ', kinds.ca_tax_st),
                                               CONCAT('people ', kinds.people))
                        THEN kinds.accounts ELSE 0 END) AS present
          FROM (VALUES ('people 1', 0.60), ('people 2', 0.38), ('people 3', 0.02),
                       ('tax status 0', 0.20), ('tax status 1', 0.50),
                       ('tax status 2', 0.30)) AS expected (what, share)
         CROSS JOIN (SELECT a.ca_tax_st, p.people, COUNT(*) AS accounts
                       FROM brokerage.customer_account a
                       JOIN (SELECT ap_ca_id, COUNT(*) AS people
                               FROM brokerage.account_permission
                              GROUP BY ap_ca_id) p ON p.ap_ca_id = a.ca_id
                      GROUP BY a.ca_tax_st, p.people) AS kinds
         GROUP BY expected.what, expected.share) AS shares
 WHERE ABS(present - total * share) > 5 * SQRT(total * share * (1 - share));
