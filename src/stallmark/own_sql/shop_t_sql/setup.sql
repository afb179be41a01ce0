-- The shop's tables and rows, for a new database of SQL Server: sqlcmd -S SERVER -d DATABASE -i setup.sql
CREATE TABLE film (
    film_id int NOT NULL PRIMARY KEY,
    title nvarchar(100) NOT NULL,
    minutes int NOT NULL,
    description nvarchar(400) NOT NULL
);
CREATE TABLE customer (
    customer_id int NOT NULL PRIMARY KEY,
    name nvarchar(100) NOT NULL,
    region varchar(10) NOT NULL,
    rentals int NOT NULL DEFAULT 0
);
CREATE TABLE copy (
    copy_id int NOT NULL PRIMARY KEY,
    film_id int NOT NULL REFERENCES film,
    is_out bit NOT NULL DEFAULT 0
);
CREATE INDEX copy_film ON copy (film_id);
CREATE TABLE rental (
    rental_id bigint IDENTITY NOT NULL PRIMARY KEY,
    copy_id int NOT NULL REFERENCES copy,
    customer_id int NOT NULL REFERENCES customer,
    rented_at datetime2(3) NOT NULL,
    returned_at datetime2(3) NULL
);
CREATE INDEX rental_customer ON rental (customer_id, rental_id);
CREATE INDEX rental_copy ON rental (copy_id, returned_at);
GO

-- Numbers from 1 to 10000.
WITH digit AS (SELECT n FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS d (n))
SELECT 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS n
INTO #number
FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS d;

INSERT INTO film (film_id, title, minutes, description)
SELECT n, CONCAT('Film ', n), 60 + n * 7 % 120, REPLICATE(CONCAT('scene ', n, ' '), 20)
FROM #number
WHERE n <= 2000;

INSERT INTO customer (customer_id, name, region)
SELECT n, CONCAT('Customer ', n), CASE n % 4 WHEN 0 THEN 'north' WHEN 1 THEN 'south' WHEN 2 THEN 'east' ELSE 'west' END
FROM #number
WHERE n <= 5000;

INSERT INTO copy (copy_id, film_id)
SELECT n, n % 2000 + 1
FROM #number;

DROP TABLE #number;
GO
