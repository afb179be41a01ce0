-- A copy that is in is taken; if all are out, the transaction is rolled back.
UPDATE copy SET is_out = 1
OUTPUT inserted.copy_id
WHERE is_out = 0 AND copy_id = (
    SELECT TOP (1) copy_id FROM copy WITH (UPDLOCK, READPAST)
    WHERE film_id = :film AND is_out = 0
    ORDER BY copy_id
);
INSERT INTO rental (copy_id, customer_id, rented_at) VALUES (:copy, :customer, :now);
UPDATE customer SET rentals = rentals + 1 WHERE customer_id = :customer;
