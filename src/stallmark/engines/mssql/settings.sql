-- Of the server's configuration, what decides I/O.
SELECT c.name, CAST(c.value_in_use AS bigint) AS value
  FROM sys.configurations AS c
 WHERE c.name IN ('max server memory (MB)', 'min server memory (MB)', 'max degree of parallelism',
                  'cost threshold for parallelism', 'recovery interval (min)', 'backup compression default',
                  'max worker threads', 'lightweight pooling', 'priority boost', 'optimize for ad hoc workloads',
                  'backup compression algorithm', 'hardware offload enabled', 'ADR Cleaner Thread Count',
                  'ADR Preallocation Factor', 'ADR cleaner lock timeout (s)', 'SLOG memory quota (%)',
                  'availability group commit time (ms)', 'tiered memory enabled', 'max server tiered memory (MB)',
                  'max lock manager cache memory (%)')
