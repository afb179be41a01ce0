-- RF2: the old orders are gone
UPDATE warehouse.refresh SET deleted = 1
