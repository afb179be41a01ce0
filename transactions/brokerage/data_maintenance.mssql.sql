-- Data-Maintenance: one small correction in the table that @table names, such that the same one again takes it back.
-- What follows from other tables (counts, prices, figures) stays as it is. Returns how many rows were changed.
-- It changes rows of one table only, so it waits for others, and nobody waits for it in a circle.
-- It neither begins nor commits (error 266): the calling batch does.
DROP PROCEDURE IF EXISTS brokerage.data_maintenance_tweak;
GO
CREATE PROCEDURE brokerage.data_maintenance_tweak
    @table varchar(20),
    @key bigint,
    @symbol varchar(15),
    @day integer
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    DECLARE @watch_list bigint;
    DECLARE @watched varchar(15);
    DECLARE @other varchar(15);

    IF @table = 'account_permission' -- rights that were given are taken, and the other way round
        UPDATE brokerage.account_permission
           SET ap_acl = TRANSLATE(ap_acl, '01', '10')
         WHERE ap_ca_id = @key;

    ELSE IF @table = 'address' -- the country is abbreviated
        UPDATE brokerage.address
           SET ad_ctry = CASE ad_ctry WHEN 'USA' THEN 'US' ELSE 'USA' END
         WHERE ad_id = @key;

    ELSE IF @table = 'company' -- its rating goes a step up or down
        UPDATE brokerage.company
           SET co_sp_rate = CASE co_sp_rate
                            WHEN 'AAA' THEN 'AA+' WHEN 'AA+' THEN 'AAA'
                            WHEN 'AA' THEN 'AA-' WHEN 'AA-' THEN 'AA'
                            WHEN 'A+' THEN 'A' WHEN 'A' THEN 'A+'
                            WHEN 'A-' THEN 'BBB+' WHEN 'BBB+' THEN 'A-'
                            WHEN 'BBB' THEN 'BBB-' WHEN 'BBB-' THEN 'BBB'
                            WHEN 'BB+' THEN 'BB' ELSE 'BB+' END
         WHERE co_id = @key;

    ELSE IF @table = 'customer' -- prefers the other e-mail address
        UPDATE brokerage.customer
           SET c_email_1 = c_email_2,
               c_email_2 = c_email_1
         WHERE c_id = @key;

    ELSE IF @table = 'customer_taxrate' -- an odd bracket becomes the next, an even one that before
        UPDATE brokerage.customer_taxrate
           SET cx_tx_id = CONCAT(LEFT(cx_tx_id, 2),
                                 RIGHT(CONCAT('0', CAST(RIGHT(cx_tx_id, 2) AS integer)
                                                   - 1 + 2 * (CAST(RIGHT(cx_tx_id, 2) AS integer) % 2)), 2))
         WHERE cx_c_id = @key;

    ELSE IF @table = 'daily_market' -- one share more or less was traded on that day of each month
        UPDATE brokerage.daily_market
           SET dm_vol = dm_vol + 1 - 2 * (dm_vol % 2)
         WHERE dm_s_symb = @symbol
           AND DAY(dm_date) = @day;

    ELSE IF @table = 'exchange' -- where the security is listed; its hours are said in other words
        UPDATE brokerage.exchange
           SET ex_desc = CASE WHEN ex_desc LIKE '%, Monday to Friday'
                              THEN REPLACE(ex_desc, ', Monday to Friday', ' on weekdays')
                              ELSE REPLACE(ex_desc, ' on weekdays', ', Monday to Friday') END
         WHERE ex_id = (SELECT s_ex_id FROM brokerage.security WHERE s_symb = @symbol);

    ELSE IF @table = 'financial' -- the quarters of a company begin on the second day instead of the first
        UPDATE brokerage.financial
           SET fi_qtr_start_date = DATEADD(day, CASE DAY(fi_qtr_start_date) WHEN 1 THEN 1 ELSE -1 END,
                                           fi_qtr_start_date)
         WHERE fi_co_id = @key;

    ELSE IF @table = 'news_item' -- of a company: an odd day of the year becomes the next, an even one that before
        UPDATE brokerage.news_item
           SET ni_dts = DATEADD(day, 1 - 2 * (DATEDIFF(day, '2004-01-01', ni_dts) % 2), ni_dts)
         WHERE ni_id IN (SELECT nx_ni_id FROM brokerage.news_xref WHERE nx_co_id = @key);

    ELSE IF @table = 'security' -- came to the exchange a day later or earlier
        UPDATE brokerage.security
           SET s_exch_date = DATEADD(day, 1 - 2 * (DATEDIFF(day, s_start_date, s_exch_date) % 2), s_exch_date)
         WHERE s_symb = @symbol;

    ELSE IF @table = 'taxrate' -- what a customer pays; a comma is left out of the names
        UPDATE brokerage.taxrate
           SET tx_name = CASE WHEN tx_name LIKE '%, bracket%'
                              THEN REPLACE(tx_name, ', bracket', ' bracket')
                              ELSE REPLACE(tx_name, ' bracket', ', bracket') END
         WHERE tx_id IN (SELECT cx_tx_id FROM brokerage.customer_taxrate WHERE cx_c_id = @key);

    ELSE IF @table = 'watch_item' -- somebody watches a company's other security
    BEGIN
        -- The first, in ten lists, of a company of whose two securities one is watched. Which companies these are does
        -- not change by it, so the same is found again.
        SELECT TOP (1) @watch_list = i.wi_wl_id, @watched = i.wi_s_symb, @other = o.s_symb
          FROM brokerage.watch_item i
          JOIN brokerage.security s ON s.s_symb = i.wi_s_symb
          JOIN brokerage.security o ON o.s_co_id = s.s_co_id AND o.s_issue <> s.s_issue
         WHERE i.wi_wl_id BETWEEN @key AND @key + 9
           AND NOT EXISTS (SELECT 1
                             FROM brokerage.watch_item w
                            WHERE w.wi_wl_id = i.wi_wl_id
                              AND w.wi_s_symb = o.s_symb)
         ORDER BY i.wi_wl_id, s.s_co_id;
        UPDATE brokerage.watch_item
           SET wi_s_symb = @other
         WHERE wi_wl_id = @watch_list
           AND wi_s_symb = @watched;
    END
    ELSE
        THROW 50000, 'data_maintenance_tweak does not know that table', 1;

    SELECT @@ROWCOUNT AS changed;
END;
