-- Each news item is about one company, says something, and is of 2004 or, as times are moved by a day and back later,
-- of the day after.
SELECT COALESCE(i.ni_id, x.nx_ni_id) AS news_item, x.companies, i.ni_headline, i.ni_dts
  FROM brokerage.news_item i
  FULL JOIN (SELECT nx_ni_id, COUNT(*) AS companies
               FROM brokerage.news_xref
              GROUP BY nx_ni_id) x ON x.nx_ni_id = i.ni_id
 WHERE i.ni_id IS NULL
    OR x.nx_ni_id IS NULL
    OR x.companies <> 1
    OR i.ni_headline = ''
    OR i.ni_summary = ''
    OR SUBSTRING(i.ni_item, 1, 1) = ''
    OR i.ni_source = ''
    OR i.ni_dts < '2004-01-01'
    OR i.ni_dts >= '2005-01-02'
