-- A mailbox as it was loaded: so many messages, the first numbers, and nothing has been done to it.
SELECT mb_id, mb_first, mb_next, mb_messages, mb_deletes, mb_updates, mb_moves
  FROM mail.mailbox
 WHERE mb_first <> 1
    OR mb_next <> :messages + 1
    OR mb_messages <> :messages
    OR mb_deletes + mb_updates + mb_moves <> 0
