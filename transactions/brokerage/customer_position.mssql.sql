-- Customer-Position: a customer's accounts with what they are worth, and the states of an account's last trades.
-- Only reads, in one transaction of the caller's at READ COMMITTED: what trades meanwhile may be seen by the second
-- procedure and not by the first.

-- Frame 1. The customer is given by the key or by the tax id. One row for each account, ten at most, the least worth
-- first; the customer's own columns are the same in all of them.
DROP PROCEDURE IF EXISTS brokerage.customer_position_accounts;
GO
CREATE PROCEDURE brokerage.customer_position_accounts
    @customer bigint,
    @tax_id varchar(20)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    IF @customer IS NULL
        SELECT @customer = c_id FROM brokerage.customer WHERE c_tax_id = @tax_id;

    SELECT ca.ca_id, ca.ca_bal,
           CAST(COALESCE((SELECT SUM(hs.hs_qty * lt.lt_price)
                            FROM brokerage.holding_summary AS hs
                            JOIN brokerage.last_trade AS lt ON lt.lt_s_symb = hs.hs_s_symb
                           WHERE hs.hs_ca_id = ca.ca_id), 0) AS numeric(18, 2)) AS assets,
           c.c_id, c.c_st_id, c.c_l_name, c.c_f_name, c.c_m_name, c.c_gndr, c.c_tier,
           c.c_dob, c.c_ad_id,
           c.c_ctry_1, c.c_area_1, c.c_local_1, c.c_ext_1,
           c.c_ctry_2, c.c_area_2, c.c_local_2, c.c_ext_2,
           c.c_ctry_3, c.c_area_3, c.c_local_3, c.c_ext_3,
           c.c_email_1, c.c_email_2
      FROM brokerage.customer AS c
      JOIN brokerage.customer_account AS ca ON ca.ca_c_id = c.c_id
     WHERE c.c_id = @customer
     ORDER BY assets, ca.ca_id;
END;
GO
-- Frame 2. Each of the account's ten latest trades has two or three states.
DROP PROCEDURE IF EXISTS brokerage.customer_position_history;
GO
CREATE PROCEDURE brokerage.customer_position_history
    @account bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    SELECT t.t_id, t.t_s_symb, t.t_qty, st.st_name, th.th_dts
      FROM (SELECT TOP (10) latest.t_id, latest.t_s_symb, latest.t_qty
              FROM brokerage.trade AS latest
             WHERE latest.t_ca_id = @account
             ORDER BY latest.t_dts DESC, latest.t_id DESC) AS t
      JOIN brokerage.trade_history AS th ON th.th_t_id = t.t_id
      JOIN brokerage.status_type AS st ON st.st_id = th.th_st_id
     ORDER BY th.th_dts DESC, t.t_id, th.th_st_id;
END;
