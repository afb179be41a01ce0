-- The customer's oldest rental ends; without one, the transaction is rolled back.
UPDATE rental SET returned_at = :now
OUTPUT inserted.copy_id
WHERE returned_at IS NULL AND rental_id = (
    SELECT MIN(rental_id) FROM rental WHERE customer_id = :customer AND returned_at IS NULL
);
UPDATE copy SET is_out = 0 WHERE copy_id = :returned;
