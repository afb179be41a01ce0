-- A region has five nations.
SELECT r_regionkey, r_name, nations
  FROM warehouse.region
  LEFT JOIN (SELECT n_regionkey, COUNT(*) AS nations
               FROM warehouse.nation
              GROUP BY n_regionkey) AS n ON n_regionkey = r_regionkey
 WHERE nations IS NULL
    OR nations <> 5
