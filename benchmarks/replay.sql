-- What was recorded, a row for each transaction, and a function that does one of them.
CREATE SCHEMA bench;
CREATE TABLE bench.inputs (i bigint PRIMARY KEY, statements text[] NOT NULL);
CREATE FUNCTION bench.replay(p_i bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    recorded text[];
    statement text;
BEGIN
    SELECT statements INTO STRICT recorded FROM bench.inputs WHERE i = p_i;
    FOREACH statement IN ARRAY recorded LOOP
        EXECUTE statement;
    END LOOP;
END
$$;
