-- A company has figures of as many quarters as the scale says, three other companies as competitors in its own
-- industry, and two news.
SELECT c.co_id, f.quarters, k.competitors, k.elsewhere, n.news
  FROM brokerage.company c
  LEFT JOIN (SELECT fi_co_id, COUNT(*) AS quarters
               FROM brokerage.financial
              GROUP BY fi_co_id) f ON f.fi_co_id = c.co_id
  LEFT JOIN (SELECT p.cp_co_id, COUNT(DISTINCT p.cp_comp_co_id) AS competitors,
                    SUM(CASE WHEN p.cp_in_id = o.co_in_id AND p.cp_in_id = r.co_in_id AND r.co_id <> o.co_id
                             THEN 0 ELSE 1 END) AS elsewhere
               FROM brokerage.company_competitor p
               LEFT JOIN brokerage.company o ON o.co_id = p.cp_co_id
               LEFT JOIN brokerage.company r ON r.co_id = p.cp_comp_co_id
              GROUP BY p.cp_co_id) k ON k.cp_co_id = c.co_id
  LEFT JOIN (SELECT nx_co_id, COUNT(*) AS news
               FROM brokerage.news_xref
              GROUP BY nx_co_id) n ON n.nx_co_id = c.co_id
 WHERE COALESCE(f.quarters, 0) <> :quarters
    OR COALESCE(k.competitors, 0) <> 3
    OR k.elsewhere <> 0
    OR COALESCE(n.news, 0) <> 2
