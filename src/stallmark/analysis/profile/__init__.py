"""A production server's profile: from its record to intervals, and from intervals to findings."""
