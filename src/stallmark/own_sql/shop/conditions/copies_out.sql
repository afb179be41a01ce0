-- A copy is out if and only if one rental of it has not ended. No row: this holds.
SELECT c.copy_id, c.is_out, COUNT(r.rental_id) AS open_rentals
FROM copy AS c
LEFT JOIN rental AS r ON r.copy_id = c.copy_id AND r.returned_at IS NULL
GROUP BY c.copy_id, c.is_out
HAVING COUNT(r.rental_id) <> CAST(c.is_out AS int)
