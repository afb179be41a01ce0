"""How the database is driven and observed: engines, virtual users, collectors, run record, analysis, report."""
