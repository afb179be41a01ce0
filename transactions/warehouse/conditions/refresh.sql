-- What a refresh set inserts and what it deletes are done in turn: neither is left to be done.
SELECT refresh_set, inserted, deleted
  FROM warehouse.refresh
 WHERE refresh_set < 0
    OR CAST(inserted AS integer) <> 1
    OR CAST(deleted AS integer) <> 1
