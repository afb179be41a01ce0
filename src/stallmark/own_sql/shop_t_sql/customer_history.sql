SELECT customer_id, name FROM customer WHERE customer_id = :customer AND region = :region;
SELECT TOP (20) r.rented_at, r.returned_at, f.title
FROM rental AS r
JOIN copy AS c ON c.copy_id = r.copy_id
JOIN film AS f ON f.film_id = c.film_id
WHERE r.customer_id = :customer
ORDER BY r.rental_id DESC;
