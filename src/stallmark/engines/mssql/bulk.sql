-- [bulk_probe]
-- A table for everybody that is gone with this session: a column for each type that Stallmark's tables have.
CREATE TABLE {table} (
    [key] integer NOT NULL, big bigint, small smallint, flag bit, ratio float, price numeric(15, 2),
    rate numeric(6, 5), day date, at datetime2(3), moment datetime2, code char(10) COLLATE DATABASE_DEFAULT,
    name varchar(40) COLLATE DATABASE_DEFAULT, article varchar(max) COLLATE DATABASE_DEFAULT
)
