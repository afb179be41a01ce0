-- All brokers, companies, customers and securities are active; a security is named after its company.
SELECT what, number, name, state
  FROM (SELECT 'broker' AS what, b_id AS number, b_name AS name, b_st_id AS state FROM brokerage.broker
        UNION ALL SELECT 'company', co_id, co_name, co_st_id FROM brokerage.company
        UNION ALL SELECT 'customer', c_id, c_l_name, c_st_id FROM brokerage.customer
        UNION ALL SELECT 'security', s_co_id, s_symb, s_st_id FROM brokerage.security) AS each_one
 WHERE state <> 'ACTV'
UNION ALL
SELECT 'security of a company', c.co_id, s.s_name, s.s_issue
  FROM brokerage.security s
  JOIN brokerage.company c ON c.co_id = s.s_co_id
 WHERE s.s_name <> CONCAT(c.co_name, CASE s.s_issue WHEN 'COMMON' THEN ' Common Stock' ELSE ' Preferred A' END)
