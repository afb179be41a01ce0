"""The report of a sizing, for the one who signs: in HTML, in the terminal, and as JSON."""
