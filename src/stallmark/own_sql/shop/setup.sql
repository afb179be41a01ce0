-- The shop's tables and rows, for a new database of PostgreSQL. Stallmark executes this in its embedded database;
-- on a server of yours, once by hand: psql -f setup.sql URL
CREATE TABLE film (
    film_id integer PRIMARY KEY,
    title text NOT NULL,
    minutes integer NOT NULL,
    description text NOT NULL
);
INSERT INTO film
SELECT n, 'Film ' || n, 60 + n * 7 % 120, repeat(md5(n::text), 8)
FROM generate_series(1, 2000) AS n;

CREATE TABLE customer (
    customer_id integer PRIMARY KEY,
    name text NOT NULL,
    region text NOT NULL,
    rentals integer NOT NULL DEFAULT 0
);
INSERT INTO customer (customer_id, name, region)
SELECT n, 'Customer ' || n, (ARRAY['north', 'south', 'east', 'west'])[n % 4 + 1]
FROM generate_series(1, 5000) AS n;

CREATE TABLE copy (
    copy_id integer PRIMARY KEY,
    film_id integer NOT NULL REFERENCES film,
    is_out boolean NOT NULL DEFAULT false
);
INSERT INTO copy (copy_id, film_id)
SELECT n, n % 2000 + 1
FROM generate_series(1, 10000) AS n;
CREATE INDEX copy_film ON copy (film_id);

CREATE TABLE rental (
    rental_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    copy_id integer NOT NULL REFERENCES copy,
    customer_id integer NOT NULL REFERENCES customer,
    rented_at timestamp NOT NULL,
    returned_at timestamp
);
CREATE INDEX rental_customer ON rental (customer_id, rental_id);
CREATE INDEX rental_copy ON rental (copy_id) WHERE returned_at IS NULL;
ANALYZE;
