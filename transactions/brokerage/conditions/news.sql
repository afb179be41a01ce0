-- Each news item is about one company.
SELECT COALESCE(i.ni_id, x.nx_ni_id) AS news_item, x.companies
  FROM brokerage.news_item i
  FULL JOIN (SELECT nx_ni_id, COUNT(*) AS companies
               FROM brokerage.news_xref
              GROUP BY nx_ni_id) x ON x.nx_ni_id = i.ni_id
 WHERE i.ni_id IS NULL
    OR x.nx_ni_id IS NULL
    OR x.companies <> 1
