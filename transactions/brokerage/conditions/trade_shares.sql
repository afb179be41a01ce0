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
 WHERE ABS(present - total * share) > 5 * SQRT(total * share * (1 - share)) + 0.0001 * total
