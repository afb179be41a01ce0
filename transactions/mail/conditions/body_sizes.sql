-- Bodies have 75,000 bytes on average. Their sizes scatter by five times as much: the mean of n bodies differs by more
-- than 25 / sqrt(n) of that once in a million databases, and of few bodies by more, because they are not normal.
SELECT 'bodies' AS name, messages, bytes / messages AS mean_bytes
  FROM (SELECT SUM(CAST(fo_messages AS bigint)) AS messages, SUM(fo_bytes) AS bytes FROM mail.folder) AS total
 WHERE ABS(bytes * 1.0 / messages / 75000 - 1) > 30 / SQRT(messages)
