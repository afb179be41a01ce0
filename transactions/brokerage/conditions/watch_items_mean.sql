-- Watch lists have 100 securities on average. Allowed: five standard deviations of that average, when the length of
-- each list is drawn evenly from 50 to 150 (a standard deviation of 29.155).
SELECT items, lists
  FROM (SELECT COUNT(*) AS items FROM brokerage.watch_item) AS i
 CROSS JOIN (SELECT COUNT(*) AS lists FROM brokerage.watch_list) AS l
 WHERE ABS(items - 100.0 * lists) > 5 * 29.155 * SQRT(lists)
