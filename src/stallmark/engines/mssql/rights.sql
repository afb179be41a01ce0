-- What this login may do here, 1 or 0 each. The right to read the server's state is a smaller one since 2022.
-- sys.master_files shows a file to whoever has one of three rights.
SELECT HAS_PERMS_BY_NAME(NULL, NULL, '{state}') AS [{state}],
       HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DEFINITION') | HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER ANY DATABASE')
       | HAS_PERMS_BY_NAME(NULL, NULL, 'CREATE ANY DATABASE') AS [VIEW ANY DEFINITION],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE TABLE') AS [CREATE TABLE],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE SCHEMA') AS [CREATE SCHEMA],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE PROCEDURE') AS [CREATE PROCEDURE]
