"""Proof that every T-SQL text of the product is T-SQL: found by `texts`, judged by `parser`."""
