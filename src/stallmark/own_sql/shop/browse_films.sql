SELECT film_id, title, minutes, description FROM film WHERE film_id BETWEEN :film AND :film + 9;
