-- The customer's oldest rental ends; without one, the transaction is rolled back.
UPDATE rental SET returned_at = :now
WHERE rental_id = (
    SELECT rental_id FROM rental
    WHERE customer_id = :customer AND returned_at IS NULL
    ORDER BY rental_id LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING copy_id;
UPDATE copy SET is_out = false WHERE copy_id = :returned;
