-- The files of the database and of tempdb: where they lie, how large they are, and how they grow (pages of 8 KiB, or %).
-- sys.master_files, which alone has the size that tempdb begins with, is empty for a login without VIEW ANY DEFINITION.
SELECT own.database_name, own.name, own.type_desc, own.physical_name,
       CAST(COALESCE(own.size, named.size) AS bigint) AS pages, own.growth, own.is_percent_growth
  FROM (SELECT DB_ID() AS database_id, DB_NAME() COLLATE DATABASE_DEFAULT AS database_name, here.file_id,
               here.name COLLATE DATABASE_DEFAULT AS name, here.type_desc COLLATE DATABASE_DEFAULT AS type_desc,
               here.physical_name COLLATE DATABASE_DEFAULT AS physical_name, here.size, here.growth,
               here.is_percent_growth
          FROM sys.database_files AS here
         UNION ALL
        SELECT 2, 'tempdb' COLLATE DATABASE_DEFAULT, temp.file_id, temp.name COLLATE DATABASE_DEFAULT,
               temp.type_desc COLLATE DATABASE_DEFAULT, temp.physical_name COLLATE DATABASE_DEFAULT, NULL, temp.growth,
               temp.is_percent_growth
          FROM tempdb.sys.database_files AS temp) AS own
  LEFT JOIN sys.master_files AS named ON named.database_id = own.database_id AND named.file_id = own.file_id
 ORDER BY own.database_id, own.file_id
