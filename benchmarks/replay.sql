-- What was recorded, a row for each transaction, and a function that does the next one. A sequence says which: it keeps
-- all sessions close together, so that the order comes before its result however fast each of them is. What was recorded
-- one after the other is done at once here: now and then two results of one holding meet the wrong way round. The later
-- one then is undone and counted.
CREATE SCHEMA bench;
CREATE TABLE bench.inputs (i bigint PRIMARY KEY, statements text[] NOT NULL);
CREATE SEQUENCE bench.next;
CREATE SEQUENCE bench.undone START 1;
CREATE FUNCTION bench.replay() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    number bigint := nextval('bench.next');
    recorded text[];
    statement text;
BEGIN
    SELECT statements INTO STRICT recorded FROM bench.inputs WHERE i = number;
    BEGIN
        FOREACH statement IN ARRAY recorded LOOP
            EXECUTE statement;
        END LOOP;
    EXCEPTION WHEN integrity_constraint_violation OR deadlock_detected THEN
        PERFORM nextval('bench.undone');
    END;
END
$$;
