-- The files of the database and of tempdb: where they lie, how large they are, and how they grow (pages of 8 KiB, or %).
SELECT DB_NAME(database_id) AS database_name, name, type_desc, physical_name, CAST(size AS bigint) AS pages, growth,
       is_percent_growth
  FROM sys.master_files
 WHERE database_id IN (DB_ID(), DB_ID('tempdb'))
 ORDER BY database_id, file_id
