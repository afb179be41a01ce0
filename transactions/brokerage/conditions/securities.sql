-- A security has one last trade, a company has one or two securities, and an exchange knows how many it lists. As many
-- shares are out as the company's figures say, and a tenth of that of its preferred stock.
SELECT 'last trade' AS what, COALESCE(s.s_symb, l.lt_s_symb) AS name,
       CAST(NULL AS int) AS expected, CAST(NULL AS bigint) AS present
  FROM brokerage.security s
  FULL JOIN brokerage.last_trade l ON l.lt_s_symb = s.s_symb
 WHERE s.s_symb IS NULL
    OR l.lt_s_symb IS NULL
UNION ALL
SELECT 'securities of a company', c.co_name, 1, s.securities
  FROM brokerage.company c
  LEFT JOIN (SELECT s_co_id, COUNT(*) AS securities
               FROM brokerage.security
              GROUP BY s_co_id) s ON s.s_co_id = c.co_id
 WHERE COALESCE(s.securities, 0) NOT BETWEEN 1 AND 2
UNION ALL
SELECT 'securities at an exchange', e.ex_id, e.ex_num_symb, s.securities
  FROM brokerage.exchange e
  LEFT JOIN (SELECT s_ex_id, COUNT(*) AS securities
               FROM brokerage.security
              GROUP BY s_ex_id) s ON s.s_ex_id = e.ex_id
 WHERE COALESCE(s.securities, 0) <> e.ex_num_symb
UNION ALL
SELECT DISTINCT 'shares of a security', s.s_symb, f.fi_out_basic, s.s_num_out
  FROM brokerage.security s
  JOIN brokerage.financial f ON f.fi_co_id = s.s_co_id
 WHERE s.s_num_out <> CASE WHEN s.s_issue = 'COMMON' THEN f.fi_out_basic ELSE f.fi_out_basic / 10 END
