-- Background-Scan: bodies are read one after the other, for a checksum, from a message of a mailbox on, and until they
-- have so many bytes together; at least one. Returns the last one's number, their bytes and their checksum; nulls where
-- none is left in the mailbox.
-- It neither begins nor commits: it reads only.
CREATE OR REPLACE FUNCTION mail.background_scan(p_mailbox integer, p_from integer, p_budget bigint)
RETURNS TABLE (last_id integer, bytes bigint, checksum bigint)
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT MAX(me_id), SUM(me_bytes) INTO last_id, bytes
      FROM (SELECT me_id,
                   me_bytes,
                   SUM(me_bytes) OVER (ORDER BY me_id ROWS UNBOUNDED PRECEDING) - me_bytes AS before
              FROM (SELECT me_id, me_bytes
                      FROM mail.message
                     WHERE me_mb_id = p_mailbox
                       AND me_id >= p_from
                     ORDER BY me_id
                     LIMIT 1000) AS coming) AS summed
     WHERE before < p_budget;

    SELECT SUM(('x' || left(md5(bo_text), 8))::bit(32)::bigint) INTO checksum
      FROM mail.body
     WHERE bo_mb_id = p_mailbox
       AND bo_me_id BETWEEN p_from AND last_id;

    RETURN NEXT;
END
$$;
