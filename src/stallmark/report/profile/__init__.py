"""The report of a production server's profile: in HTML, in the terminal, and as JSON."""
