"""A production server's profile: from what was recorded to intervals, and from those to what can be said of it."""
