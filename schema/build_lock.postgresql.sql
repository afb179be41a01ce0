-- Take the lock that one build at a time has, for this session; waits for it.
SELECT pg_advisory_lock(hashtext('stallmark.build'));
