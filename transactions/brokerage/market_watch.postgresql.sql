-- Market-Watch: how many securities are watched, and by how much per cent what their companies are worth by them has
-- changed from the close of a day to the last trades; 0 where there are none. Only reads.
-- One procedure for each way to name the securities, so that each has a plan of its own.

-- The securities on the customer's watch list.
CREATE OR REPLACE FUNCTION brokerage.market_watch_list(p_customer bigint, p_since date)
RETURNS TABLE (securities bigint, percent_change numeric)
LANGUAGE sql
STABLE
AS $$
SELECT COUNT(*) AS securities,
       CAST(COALESCE(100 * (CAST(SUM(s.s_num_out * lt.lt_price) AS float)
                            / CAST(SUM(s.s_num_out * dm.dm_close) AS float) - 1), 0) AS numeric(18, 4)) AS percent_change
  FROM brokerage.watch_list AS wl
  JOIN brokerage.watch_item AS wi ON wi.wi_wl_id = wl.wl_id
  JOIN brokerage.security AS s ON s.s_symb = wi.wi_s_symb
  JOIN brokerage.last_trade AS lt ON lt.lt_s_symb = s.s_symb
  JOIN brokerage.daily_market AS dm ON dm.dm_s_symb = s.s_symb AND dm.dm_date = p_since
 WHERE wl.wl_c_id = p_customer
$$;
GO
-- The securities that the account holds, or owes.
CREATE OR REPLACE FUNCTION brokerage.market_watch_account(p_account bigint, p_since date)
RETURNS TABLE (securities bigint, percent_change numeric)
LANGUAGE sql
STABLE
AS $$
SELECT COUNT(*) AS securities,
       CAST(COALESCE(100 * (CAST(SUM(s.s_num_out * lt.lt_price) AS float)
                            / CAST(SUM(s.s_num_out * dm.dm_close) AS float) - 1), 0) AS numeric(18, 4)) AS percent_change
  FROM brokerage.holding_summary AS hs
  JOIN brokerage.security AS s ON s.s_symb = hs.hs_s_symb
  JOIN brokerage.last_trade AS lt ON lt.lt_s_symb = s.s_symb
  JOIN brokerage.daily_market AS dm ON dm.dm_s_symb = s.s_symb AND dm.dm_date = p_since
 WHERE hs.hs_ca_id = p_account
$$;
GO
-- The securities of an industry's companies, as far as their keys lie in the range.
CREATE OR REPLACE FUNCTION brokerage.market_watch_industry(
    p_industry varchar, p_first bigint, p_last bigint, p_since date
)
RETURNS TABLE (securities bigint, percent_change numeric)
LANGUAGE sql
STABLE
AS $$
SELECT COUNT(*) AS securities,
       CAST(COALESCE(100 * (CAST(SUM(s.s_num_out * lt.lt_price) AS float)
                            / CAST(SUM(s.s_num_out * dm.dm_close) AS float) - 1), 0) AS numeric(18, 4)) AS percent_change
  FROM brokerage.industry AS i
  JOIN brokerage.company AS co ON co.co_in_id = i.in_id
  JOIN brokerage.security AS s ON s.s_co_id = co.co_id
  JOIN brokerage.last_trade AS lt ON lt.lt_s_symb = s.s_symb
  JOIN brokerage.daily_market AS dm ON dm.dm_s_symb = s.s_symb AND dm.dm_date = p_since
 WHERE i.in_name = p_industry
   AND co.co_id BETWEEN p_first AND p_last
$$;
