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
    OR trades <> CASE WHEN block = :unit_trade_ids / 101 - 1 THEN :unit_trades - 100 * block ELSE 100 END
