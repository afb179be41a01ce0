-- A copy that is in is taken; if all are out, the transaction is rolled back.
SELECT copy_id FROM copy WHERE film_id = :film AND NOT is_out ORDER BY copy_id LIMIT 1 FOR UPDATE SKIP LOCKED;
UPDATE copy SET is_out = true WHERE copy_id = :copy;
INSERT INTO rental (copy_id, customer_id, rented_at) VALUES (:copy, :customer, :now);
UPDATE customer SET rentals = rentals + 1 WHERE customer_id = :customer;
