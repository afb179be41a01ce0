-- Large enough that no file grows while anything is measured, and with a log that empties itself: nobody backs it up.
IF DB_ID('{name}') IS NULL
BEGIN
    CREATE DATABASE {name};
    ALTER DATABASE {name} SET RECOVERY SIMPLE;
    ALTER DATABASE {name} SET AUTO_CLOSE OFF;
    ALTER DATABASE {name} MODIFY FILE (NAME = {name}, SIZE = 4096MB, FILEGROWTH = 512MB);
    ALTER DATABASE {name} MODIFY FILE (NAME = {name}_log, SIZE = 1024MB, FILEGROWTH = 512MB);
END
