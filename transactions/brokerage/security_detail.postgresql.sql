-- Security-Detail: all that is known of a security and its company: addresses, exchange, last trade, three competitors,
-- twenty quarters, what it cost on some days, and two news. Only reads.
-- One row, in which what is many is an array of rows. Articles are long (100,000 characters at most) and lie outside
-- their rows: unless they are asked for they are not touched.
-- In thirty days there are twenty weekdays, the most that are asked for. Without that end one plan for all calls would
-- look dear, and the server would make a new one for each.
CREATE OR REPLACE FUNCTION brokerage.security_detail(
    p_symbol varchar, p_from date, p_days integer, p_articles boolean
)
RETURNS TABLE (
    s_name varchar, s_num_out bigint, s_start_date date, s_exch_date date, s_pe numeric,
    s_52wk_high numeric, s_52wk_high_date date, s_52wk_low numeric, s_52wk_low_date date,
    s_dividend numeric, s_yield numeric,
    co_id bigint, co_name varchar, co_st_id char, co_sp_rate varchar, co_ceo varchar, co_desc varchar,
    co_open_date date,
    co_ad_line1 varchar, co_ad_line2 varchar, co_zc_code varchar, co_zc_town varchar, co_zc_div varchar,
    co_ad_ctry varchar,
    ex_name varchar, ex_desc varchar, ex_num_symb integer, ex_open integer, ex_close integer,
    ex_ad_line1 varchar, ex_ad_line2 varchar, ex_zc_code varchar, ex_zc_town varchar, ex_zc_div varchar,
    ex_ad_ctry varchar,
    lt_price numeric, lt_open_price numeric, lt_vol bigint,
    competitors varchar [], financials brokerage.financial [], days brokerage.daily_market [], news text []
)
LANGUAGE sql
STABLE
AS $$
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
       lt.lt_price, lt.lt_open_price, lt.lt_vol,

       ARRAY(
           SELECT ARRAY[rival.co_name, i.in_name]
             FROM brokerage.company_competitor AS cp
             JOIN brokerage.company AS rival ON rival.co_id = cp.cp_comp_co_id
             JOIN brokerage.industry AS i ON i.in_id = cp.cp_in_id
            WHERE cp.cp_co_id = s.s_co_id
            ORDER BY cp.cp_comp_co_id, cp.cp_in_id
            LIMIT 3
       ) AS competitors,

       ARRAY(
           SELECT fi
             FROM brokerage.financial AS fi
            WHERE fi.fi_co_id = s.s_co_id
            ORDER BY fi.fi_year, fi.fi_qtr
            LIMIT 20
       ) AS financials,

       ARRAY(
           SELECT dm
             FROM brokerage.daily_market AS dm
            WHERE dm.dm_s_symb = p_symbol
              AND dm.dm_date >= p_from
              AND dm.dm_date < p_from + 30
            ORDER BY dm.dm_date
            LIMIT p_days
       ) AS days,

       ARRAY(
           SELECT ARRAY[ni.ni_dts::text, ni.ni_source, ni.ni_author, ni.ni_headline, ni.ni_summary,
                        CASE WHEN p_articles THEN ni.ni_item END]
             FROM brokerage.news_xref AS nx
             JOIN brokerage.news_item AS ni ON ni.ni_id = nx.nx_ni_id
            WHERE nx.nx_co_id = s.s_co_id
            ORDER BY ni.ni_id
            LIMIT 2
       ) AS news

  FROM brokerage.security AS s
  JOIN brokerage.company AS co ON co.co_id = s.s_co_id
  JOIN brokerage.address AS ca ON ca.ad_id = co.co_ad_id
  JOIN brokerage.zip_code AS cz ON cz.zc_code = ca.ad_zc_code
  JOIN brokerage.exchange AS ex ON ex.ex_id = s.s_ex_id
  JOIN brokerage.address AS ea ON ea.ad_id = ex.ex_ad_id
  JOIN brokerage.zip_code AS ez ON ez.zc_code = ea.ad_zc_code
  JOIN brokerage.last_trade AS lt ON lt.lt_s_symb = s.s_symb
 WHERE s.s_symb = p_symbol
$$;
