-- Why nothing can be written any more in this session, as a clause; empty if it can.
SELECT CASE
       WHEN pg_is_in_recovery() THEN 'it is a standby now'
       WHEN current_setting('default_transaction_read_only') = 'on' THEN 'default_transaction_read_only is on'
       ELSE ''
       END AS why
