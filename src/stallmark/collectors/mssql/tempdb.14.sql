SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       used.file_id AS [file],
       used.total_page_count * 8192 AS size_bytes,
       used.unallocated_extent_page_count * 8192 AS free_bytes,
       used.version_store_reserved_page_count * 8192 AS version_store_bytes,
       used.user_object_reserved_page_count * 8192 AS user_objects_bytes,
       used.internal_object_reserved_page_count * 8192 AS internal_objects_bytes,
       used.mixed_extent_page_count * 8192 AS mixed_extents_bytes
  FROM tempdb.sys.dm_db_file_space_usage AS used
