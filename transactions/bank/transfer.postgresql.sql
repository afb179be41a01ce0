-- One round trip: moves an amount and returns the account's new balance.
SELECT bank.transfer($1, $2, $3, $4)
