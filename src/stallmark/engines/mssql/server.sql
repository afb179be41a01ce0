-- [free_space]
-- Bytes that data may still take: on the fullest volume that holds a data file, and inside these files, which are made
-- larger than what is in them. A log has its own volume or file, and is made as large as it is to be.
SELECT (SELECT MIN(v.available_bytes)
          FROM sys.database_files AS f
         CROSS APPLY sys.dm_os_volume_stats(DB_ID(), f.file_id) AS v
         WHERE f.type_desc = 'ROWS')
     + 8192 * ((SELECT SUM(CAST(f.size AS bigint)) FROM sys.database_files AS f WHERE f.type_desc = 'ROWS')
             - (SELECT SUM(a.total_pages) FROM sys.allocation_units AS a)) AS free_bytes
