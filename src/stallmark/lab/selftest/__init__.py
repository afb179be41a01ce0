"""`stallmark selftest`: try on a server all that Stallmark does."""
