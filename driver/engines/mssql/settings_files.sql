-- The files of the database and of tempdb, in order: where they lie, how large they are, and how they grow.
SELECT 'file ' + DB_NAME(f.database_id) + '.' + f.name AS name,
       f.type_desc + ', ' + f.physical_name
       + ', ' + CAST(CAST(f.size AS bigint) * 8 / 1024 AS nvarchar(20)) + ' MiB, grows by '
       + CASE WHEN f.growth = 0 THEN 'nothing'
              WHEN f.is_percent_growth = 1 THEN CAST(f.growth AS nvarchar(20)) + ' %'
              ELSE CAST(CAST(f.growth AS bigint) * 8 / 1024 AS nvarchar(20)) + ' MiB'
         END AS value
  FROM sys.master_files AS f
 WHERE f.database_id IN (DB_ID(), DB_ID('tempdb'))
