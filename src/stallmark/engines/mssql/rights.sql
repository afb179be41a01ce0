-- What this login may do here, 1 or 0 each: the rights that views want, and those to make tables.
SELECT {states},
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE TABLE') AS [CREATE TABLE],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE SCHEMA') AS [CREATE SCHEMA],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE PROCEDURE') AS [CREATE PROCEDURE]
