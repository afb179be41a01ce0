"""Reports of several loads: all of them on one page, and each load of users on its own."""
