-- Q22: global sales opportunity
-- Customers with more than the average in their account who have never ordered, by the country of their telephone.
SELECT cntrycode,
       COUNT(*) AS numcust,
       SUM(c_acctbal) AS totacctbal
  FROM (SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode,
               c_acctbal
          FROM warehouse.customer
         WHERE SUBSTRING(c_phone FROM 1 FOR 2)
               IN (':code1', ':code2', ':code3', ':code4', ':code5', ':code6', ':code7')
           AND c_acctbal > (SELECT AVG(c_acctbal)
                              FROM warehouse.customer
                             WHERE c_acctbal > 0.00
                               AND SUBSTRING(c_phone FROM 1 FOR 2)
                                   IN (':code1', ':code2', ':code3', ':code4', ':code5', ':code6', ':code7'))
           AND NOT EXISTS (SELECT 1
                             FROM warehouse.orders
                            WHERE o_custkey = c_custkey)) AS custsale
 GROUP BY cntrycode
 ORDER BY cntrycode
