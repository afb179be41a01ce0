-- RF2: the lineitems of the oldest orders go
DELETE FROM warehouse.lineitem WHERE l_orderkey IN (:keys)
