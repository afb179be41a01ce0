SELECT query_plan FROM sys.dm_exec_text_query_plan({handle}, {begin}, {end})
