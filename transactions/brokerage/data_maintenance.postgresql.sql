-- Data-Maintenance: one small correction in the table that p_table names, such that the same one again takes it back.
-- What follows from other tables (counts, prices, figures) stays as it is. Returns how many rows were changed.
-- It changes rows of one table only, so it waits for others, and nobody waits for it in a circle.
-- It neither begins nor commits: the caller's statement is the transaction.
CREATE OR REPLACE FUNCTION brokerage.data_maintenance_tweak(
    p_table varchar(20), p_key bigint, p_symbol varchar(15), p_day integer
)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    watch_list bigint;
    watched varchar(15);
    other varchar(15);
    changed integer;
BEGIN
    CASE p_table

    WHEN 'account_permission' THEN -- rights that were given are taken, and the other way round
        UPDATE brokerage.account_permission
           SET ap_acl = TRANSLATE(ap_acl, '01', '10')
         WHERE ap_ca_id = p_key;

    WHEN 'address' THEN -- the country is abbreviated
        UPDATE brokerage.address
           SET ad_ctry = CASE ad_ctry WHEN 'USA' THEN 'US' ELSE 'USA' END
         WHERE ad_id = p_key;

    WHEN 'company' THEN -- its rating goes a step up or down
        UPDATE brokerage.company
           SET co_sp_rate = CASE co_sp_rate
                            WHEN 'AAA' THEN 'AA+' WHEN 'AA+' THEN 'AAA'
                            WHEN 'AA' THEN 'AA-' WHEN 'AA-' THEN 'AA'
                            WHEN 'A+' THEN 'A' WHEN 'A' THEN 'A+'
                            WHEN 'A-' THEN 'BBB+' WHEN 'BBB+' THEN 'A-'
                            WHEN 'BBB' THEN 'BBB-' WHEN 'BBB-' THEN 'BBB'
                            WHEN 'BB+' THEN 'BB' ELSE 'BB+' END
         WHERE co_id = p_key;

    WHEN 'customer' THEN -- prefers the other e-mail address
        UPDATE brokerage.customer
           SET c_email_1 = c_email_2,
               c_email_2 = c_email_1
         WHERE c_id = p_key;

    WHEN 'customer_taxrate' THEN -- an odd bracket becomes the next, an even one that before
        UPDATE brokerage.customer_taxrate
           SET cx_tx_id = CONCAT(LEFT(cx_tx_id, 2),
                                 RIGHT(CONCAT('0', CAST(RIGHT(cx_tx_id, 2) AS integer)
                                                   - 1 + 2 * (CAST(RIGHT(cx_tx_id, 2) AS integer) % 2)), 2))
         WHERE cx_c_id = p_key;

    WHEN 'daily_market' THEN -- one share more or less was traded on that day of each month
        UPDATE brokerage.daily_market
           SET dm_vol = dm_vol + 1 - 2 * (dm_vol % 2)
         WHERE dm_s_symb = p_symbol
           AND EXTRACT(DAY FROM dm_date) = p_day;

    WHEN 'exchange' THEN -- where the security is listed; its hours are said in other words
        UPDATE brokerage.exchange
           SET ex_desc = CASE WHEN ex_desc LIKE '%, Monday to Friday'
                              THEN REPLACE(ex_desc, ', Monday to Friday', ' on weekdays')
                              ELSE REPLACE(ex_desc, ' on weekdays', ', Monday to Friday') END
         WHERE ex_id = (SELECT s_ex_id FROM brokerage.security WHERE s_symb = p_symbol);

    WHEN 'financial' THEN -- the quarters of a company begin on the second day instead of the first
        UPDATE brokerage.financial
           SET fi_qtr_start_date = fi_qtr_start_date
                                   + CASE EXTRACT(DAY FROM fi_qtr_start_date) WHEN 1 THEN 1 ELSE -1 END
         WHERE fi_co_id = p_key;

    WHEN 'news_item' THEN -- of a company: an odd day of the year becomes the next, an even one that before
        UPDATE brokerage.news_item
           SET ni_dts = ni_dts + INTERVAL '1 day' * (1 - 2 * ((CAST(ni_dts AS date) - DATE '2004-01-01') % 2))
         WHERE ni_id IN (SELECT nx_ni_id FROM brokerage.news_xref WHERE nx_co_id = p_key);

    WHEN 'security' THEN -- came to the exchange a day later or earlier
        UPDATE brokerage.security
           SET s_exch_date = s_exch_date + 1 - 2 * ((s_exch_date - s_start_date) % 2)
         WHERE s_symb = p_symbol;

    WHEN 'taxrate' THEN -- what a customer pays; a comma is left out of the names
        UPDATE brokerage.taxrate
           SET tx_name = CASE WHEN tx_name LIKE '%, bracket%'
                              THEN REPLACE(tx_name, ', bracket', ' bracket')
                              ELSE REPLACE(tx_name, ' bracket', ', bracket') END
         WHERE tx_id IN (SELECT cx_tx_id FROM brokerage.customer_taxrate WHERE cx_c_id = p_key);

    WHEN 'watch_item' THEN -- somebody watches a company's other security
        -- The first, in ten lists, of a company of whose two securities one is watched. Which companies these are does
        -- not change by it, so the same is found again.
        SELECT i.wi_wl_id, i.wi_s_symb, o.s_symb
          INTO watch_list, watched, other
          FROM brokerage.watch_item i
          JOIN brokerage.security s ON s.s_symb = i.wi_s_symb
          JOIN brokerage.security o ON o.s_co_id = s.s_co_id AND o.s_issue <> s.s_issue
         WHERE i.wi_wl_id BETWEEN p_key AND p_key + 9
           AND NOT EXISTS (SELECT 1
                             FROM brokerage.watch_item w
                            WHERE w.wi_wl_id = i.wi_wl_id
                              AND w.wi_s_symb = o.s_symb)
         ORDER BY i.wi_wl_id, s.s_co_id
         LIMIT 1;
        UPDATE brokerage.watch_item
           SET wi_s_symb = other
         WHERE wi_wl_id = watch_list
           AND wi_s_symb = watched;
    END CASE;

    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN changed;
END
$$;
