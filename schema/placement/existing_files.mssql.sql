-- The files of the current database, in the order of their numbers; sizes in bytes. A log lies in no filegroup.
SELECT f.type_desc,
       g.name AS filegroup,
       f.name,
       f.physical_name,
       CAST(f.size AS bigint) * 8192 AS size_bytes,
       CASE WHEN f.is_percent_growth = 1 THEN NULL ELSE CAST(f.growth AS bigint) * 8192 END AS growth_bytes,
       CASE WHEN f.is_percent_growth = 1 THEN f.growth END AS growth_percent
  FROM sys.database_files AS f
  LEFT JOIN sys.filegroups AS g ON g.data_space_id = f.data_space_id
 WHERE f.type IN (0, 1)
 ORDER BY f.file_id;
