-- Security-Detail: all that is known of a security and its company: addresses, exchange, last trade, three competitors,
-- twenty quarters, what it cost on some days, and two news. Only reads.
-- A result for each of these. Articles are long (100,000 characters at most) and lie outside their rows: unless they
-- are asked for they are not touched.
-- In thirty days there are twenty weekdays, the most that are asked for.
DROP PROCEDURE IF EXISTS brokerage.security_detail;
GO
CREATE PROCEDURE brokerage.security_detail
    @symbol varchar(15),
    @from date,
    @days integer,
    @articles bit
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @company bigint;

    SELECT @company = s_co_id FROM brokerage.security WHERE s_symb = @symbol;

    SELECT s.s_name, s.s_num_out, s.s_start_date, s.s_exch_date, s.s_pe,
           s.s_52wk_high, s.s_52wk_high_date, s.s_52wk_low, s.s_52wk_low_date,
           s.s_dividend, s.s_yield,
           co.co_id, co.co_name, co.co_st_id, co.co_sp_rate, co.co_ceo, co.co_desc,
           co.co_open_date,
           ca.ad_line1 AS co_ad_line1, ca.ad_line2 AS co_ad_line2, cz.zc_code AS co_zc_code,
           cz.zc_town AS co_zc_town, cz.zc_div AS co_zc_div, ca.ad_ctry AS co_ad_ctry,
           ex.ex_name, ex.ex_desc, ex.ex_num_symb, ex.ex_open, ex.ex_close,
           ea.ad_line1 AS ex_ad_line1, ea.ad_line2 AS ex_ad_line2, ez.zc_code AS ex_zc_code,
           ez.zc_town AS ex_zc_town, ez.zc_div AS ex_zc_div, ea.ad_ctry AS ex_ad_ctry,
           lt.lt_price, lt.lt_open_price, lt.lt_vol
      FROM brokerage.security AS s
      JOIN brokerage.company AS co ON co.co_id = s.s_co_id
      JOIN brokerage.address AS ca ON ca.ad_id = co.co_ad_id
      JOIN brokerage.zip_code AS cz ON cz.zc_code = ca.ad_zc_code
      JOIN brokerage.exchange AS ex ON ex.ex_id = s.s_ex_id
      JOIN brokerage.address AS ea ON ea.ad_id = ex.ex_ad_id
      JOIN brokerage.zip_code AS ez ON ez.zc_code = ea.ad_zc_code
      JOIN brokerage.last_trade AS lt ON lt.lt_s_symb = s.s_symb
     WHERE s.s_symb = @symbol;

    SELECT TOP (3) rival.co_name, i.in_name
      FROM brokerage.company_competitor AS cp
      JOIN brokerage.company AS rival ON rival.co_id = cp.cp_comp_co_id
      JOIN brokerage.industry AS i ON i.in_id = cp.cp_in_id
     WHERE cp.cp_co_id = @company
     ORDER BY cp.cp_comp_co_id, cp.cp_in_id;

    SELECT TOP (20) fi.fi_co_id, fi.fi_year, fi.fi_qtr, fi.fi_qtr_start_date, fi.fi_revenue, fi.fi_net_earn,
           fi.fi_basic_eps, fi.fi_dilut_eps, fi.fi_margin, fi.fi_inventory, fi.fi_assets, fi.fi_liability,
           fi.fi_out_basic, fi.fi_out_dilut
      FROM brokerage.financial AS fi
     WHERE fi.fi_co_id = @company
     ORDER BY fi.fi_year, fi.fi_qtr;

    SELECT TOP (@days) dm.dm_date, dm.dm_s_symb, dm.dm_close, dm.dm_high, dm.dm_low, dm.dm_vol
      FROM brokerage.daily_market AS dm
     WHERE dm.dm_s_symb = @symbol
       AND dm.dm_date >= @from
       AND dm.dm_date < DATEADD(DAY, 30, @from)
     ORDER BY dm.dm_date;

    IF @articles = 1
        SELECT TOP (2) ni.ni_dts, ni.ni_source, ni.ni_author, ni.ni_headline, ni.ni_summary, ni.ni_item
          FROM brokerage.news_xref AS nx
          JOIN brokerage.news_item AS ni ON ni.ni_id = nx.nx_ni_id
         WHERE nx.nx_co_id = @company
         ORDER BY ni.ni_id;
    ELSE
        SELECT TOP (2) ni.ni_dts, ni.ni_source, ni.ni_author, ni.ni_headline, ni.ni_summary, NULL AS ni_item
          FROM brokerage.news_xref AS nx
          JOIN brokerage.news_item AS ni ON ni.ni_id = nx.nx_ni_id
         WHERE nx.nx_co_id = @company
         ORDER BY ni.ni_id;
END;
