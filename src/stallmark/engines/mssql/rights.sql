-- What this login may do here, 1 or 0 each: the rights that views want, and those to make tables. sys.master_files shows a
-- file to whoever has one of three rights.
SELECT {states},
       HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DEFINITION') | HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER ANY DATABASE')
       | HAS_PERMS_BY_NAME(NULL, NULL, 'CREATE ANY DATABASE') AS [VIEW ANY DEFINITION],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE TABLE') AS [CREATE TABLE],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE SCHEMA') AS [CREATE SCHEMA],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE PROCEDURE') AS [CREATE PROCEDURE]
