-- Trade-Status: the fifty latest trades of an account with their states, and who its customer and broker are.
-- Only reads. A row for each trade, the latest first, names customer and broker too; an account that has not traded
-- yet has one row with these alone.
CREATE OR REPLACE FUNCTION brokerage.trade_status(p_account bigint)
RETURNS TABLE (
    t_id bigint, t_dts timestamp, st_name varchar, tt_name varchar, t_s_symb varchar, t_qty integer,
    t_exec_name varchar, t_chrg numeric, s_name varchar, ex_name varchar,
    c_l_name varchar, c_f_name varchar, b_name varchar
)
LANGUAGE sql
STABLE
AS $$
SELECT t.t_id, t.t_dts, st.st_name, tt.tt_name, t.t_s_symb, t.t_qty,
       t.t_exec_name, t.t_chrg, s.s_name, ex.ex_name,
       c.c_l_name, c.c_f_name, b.b_name
  FROM brokerage.customer_account AS ca
  JOIN brokerage.customer AS c ON c.c_id = ca.ca_c_id
  JOIN brokerage.broker AS b ON b.b_id = ca.ca_b_id
  LEFT JOIN (SELECT latest.t_ca_id, latest.t_id, latest.t_dts, latest.t_st_id, latest.t_tt_id,
                    latest.t_s_symb, latest.t_qty, latest.t_exec_name, latest.t_chrg
               FROM brokerage.trade AS latest
              WHERE latest.t_ca_id = p_account
              ORDER BY latest.t_dts DESC, latest.t_id DESC
              LIMIT 50) AS t ON t.t_ca_id = ca.ca_id
  LEFT JOIN brokerage.status_type AS st ON st.st_id = t.t_st_id
  LEFT JOIN brokerage.trade_type AS tt ON tt.tt_id = t.t_tt_id
  LEFT JOIN brokerage.security AS s ON s.s_symb = t.t_s_symb
  LEFT JOIN brokerage.exchange AS ex ON ex.ex_id = s.s_ex_id
 WHERE ca.ca_id = p_account
 ORDER BY t.t_dts DESC, t.t_id DESC
$$;
