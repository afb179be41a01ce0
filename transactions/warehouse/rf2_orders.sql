-- RF2: the oldest orders go
DELETE FROM warehouse.orders WHERE o_orderkey IN (:keys)
