-- RF1: the new orders are in, the old ones of the same set are to go
UPDATE warehouse.refresh SET refresh_set = :set, inserted = TRUE, deleted = FALSE
