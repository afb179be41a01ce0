-- Broker-Volume: what the limit orders are worth that wait with some brokers for securities of one sector, by broker.
-- Only reads. Few orders wait at a time, and the plan may begin with them or with the securities of the sector.
CREATE OR REPLACE FUNCTION brokerage.broker_volume(p_brokers text, p_sector varchar)
RETURNS TABLE (b_name varchar, volume numeric)
LANGUAGE sql
STABLE
AS $$
SELECT b.b_name, CAST(SUM(tr.tr_qty * tr.tr_bid_price) AS numeric(17, 2)) AS volume
  FROM brokerage.sector AS sc
  JOIN brokerage.industry AS i ON i.in_sc_id = sc.sc_id
  JOIN brokerage.company AS co ON co.co_in_id = i.in_id
  JOIN brokerage.security AS s ON s.s_co_id = co.co_id
  JOIN brokerage.trade_request AS tr ON tr.tr_s_symb = s.s_symb
  JOIN brokerage.broker AS b ON b.b_id = tr.tr_b_id
 WHERE sc.sc_name = p_sector
   AND b.b_name = ANY (string_to_array(p_brokers, ','))
 GROUP BY b.b_id, b.b_name
 ORDER BY volume DESC, b.b_id
$$;
