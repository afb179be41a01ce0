-- Large enough that no file grows while anything is measured, and with a log that empties itself: nobody backs it up.
IF DB_ID('{database}') IS NULL
BEGIN
    CREATE DATABASE {database};
    ALTER DATABASE {database} SET RECOVERY SIMPLE;
    ALTER DATABASE {database} SET AUTO_CLOSE OFF;
    ALTER DATABASE {database} MODIFY FILE (NAME = {database}, SIZE = 4096MB, FILEGROWTH = 512MB);
    ALTER DATABASE {database} MODIFY FILE (NAME = {database}_log, SIZE = 1024MB, FILEGROWTH = 512MB);
END
