-- The files of the database and of tempdb: where they lie, how large they are, and how they grow (pages of 8 KiB, or %).
SELECT DB_NAME(f.database_id) AS database_name, f.name, f.type_desc, f.physical_name, CAST(f.size AS bigint) AS pages,
       f.growth, f.is_percent_growth
  FROM sys.master_files AS f
 WHERE f.database_id IN (DB_ID(), DB_ID('tempdb'))
 ORDER BY f.database_id, f.file_id
