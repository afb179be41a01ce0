-- An industry is one of eight or nine of a sector, after which it is named, and has its share of the companies.
SELECT i.in_id, s.sc_id, i.in_name, s.sc_name, i.of_sector, i.companies
  FROM brokerage.sector s
  FULL JOIN (SELECT i.in_id, i.in_name, i.in_sc_id, c.companies,
                    COUNT(*) OVER (PARTITION BY i.in_sc_id) AS of_sector
               FROM brokerage.industry i
               LEFT JOIN (SELECT co_in_id, COUNT(*) AS companies
                            FROM brokerage.company
                           GROUP BY co_in_id) c ON c.co_in_id = i.in_id) i ON i.in_sc_id = s.sc_id
 WHERE s.sc_id IS NULL
    OR i.in_id IS NULL
    OR i.in_name NOT LIKE CONCAT(s.sc_name, ' %')
    OR i.of_sector NOT BETWEEN 8 AND 9
    OR COALESCE(i.companies, 0) NOT BETWEEN :companies / 102 AND :companies / 102 + 1
