"""External measurements: made by another tool and another clock, and added to a closed run record."""
