-- Of all messages that have come those are missing that a delete took: one each, two where the mailbox was too full.
SELECT mb_id, mb_next, mb_messages, mb_deletes
  FROM mail.mailbox
 WHERE mb_next - 1 - mb_messages NOT BETWEEN mb_deletes AND 2 * mb_deletes
    OR mb_messages < mb_least
    OR mb_least <> :least
    OR mb_most <> :most
