-- Tables that trades do not add to have as many rows as the scale says.
SELECT table_name, expected, present
  FROM (SELECT 'charge' AS table_name, 15 AS expected, COUNT(*) AS present FROM brokerage.charge
        UNION ALL SELECT 'commission_rate', 240, COUNT(*) FROM brokerage.commission_rate
        UNION ALL SELECT 'exchange', 4, COUNT(*) FROM brokerage.exchange
        UNION ALL SELECT 'industry', 102, COUNT(*) FROM brokerage.industry
        UNION ALL SELECT 'sector', 12, COUNT(*) FROM brokerage.sector
        UNION ALL SELECT 'status_type', 5, COUNT(*) FROM brokerage.status_type
        UNION ALL SELECT 'taxrate', 320, COUNT(*) FROM brokerage.taxrate
        UNION ALL SELECT 'trade_type', 5, COUNT(*) FROM brokerage.trade_type
        UNION ALL SELECT 'zip_code', 14741, COUNT(*) FROM brokerage.zip_code
        UNION ALL SELECT 'address', :customers + :companies + 4, COUNT(*) FROM brokerage.address
        UNION ALL SELECT 'customer', :customers, COUNT(*) FROM brokerage.customer
        UNION ALL SELECT 'customer_taxrate', 2 * :customers, COUNT(*) FROM brokerage.customer_taxrate
        UNION ALL SELECT 'customer_account', :accounts, COUNT(*) FROM brokerage.customer_account
        UNION ALL SELECT 'broker', :brokers, COUNT(*) FROM brokerage.broker
        UNION ALL SELECT 'watch_list', :customers, COUNT(*) FROM brokerage.watch_list
        UNION ALL SELECT 'company', :companies, COUNT(*) FROM brokerage.company
        UNION ALL SELECT 'company_competitor', 3 * :companies, COUNT(*) FROM brokerage.company_competitor
        UNION ALL SELECT 'financial', :quarters * :companies, COUNT(*) FROM brokerage.financial
        UNION ALL SELECT 'news_item', 2 * :companies, COUNT(*) FROM brokerage.news_item
        UNION ALL SELECT 'news_xref', 2 * :companies, COUNT(*) FROM brokerage.news_xref
        UNION ALL SELECT 'security', :securities, COUNT(*) FROM brokerage.security
        UNION ALL SELECT 'last_trade', :securities, COUNT(*) FROM brokerage.last_trade) AS counted
 WHERE present <> expected
