/*
 * What all processes on the emulated arrays share, in one mapped file: the models, the queues, what is on flash,
 * and the counters. Nothing in it is ever locked: a killed process leaves nothing behind but the time it had
 * already booked.
 *
 * The layout is mirrored in layout.py; the magic number changes with it. The tables are large, but the file is
 * sparse: what a model does not use takes no memory.
 */
#ifndef STALLMARK_STATE_H
#define STALLMARK_STATE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MAGIC UINT64_C(0x3644534c4c415453) /* "STALLSD6", little-endian */

enum {
	MAX_DEVICES = 8,
	MAX_PLACES = 16,
	MAX_SPINDLES = 64,
	MAX_CHANNELS = 64,
	DIRTY_SLOTS = 1024,
	WAYS = 16,                /* of each bucket of the three tables below */
	CACHE_SLOTS = 1 << 22,    /* one for each block of 8 KiB: 32 GiB of flash */
	TIER_SLOTS = 1 << 17,     /* extents that are not cold */
	ACTIVE_SLOTS = 1 << 20,   /* extents of 64 KiB: 64 GiB touched */
};

typedef _Atomic uint64_t shared_u64;
typedef _Atomic uint8_t shared_u8;

enum operation { READ, WRITE, SYNC };
enum flash_use { NO_FLASH, CACHE, TIER };

struct flash_model {
	shared_u64 use, size, extent_bytes, read_ns, write_ns, ps_per_byte, channels, cycle_ns, move;
};

struct model { /* spindles == 0: no model, the bare device */
	shared_u64 spindles, positioning_ns[2] /* READ, WRITE */, sync_ns, ps_per_byte;
	shared_u64 revolution_ns, seek_ns; /* both 0: positioning takes a fixed time */
	struct flash_model flash;
};

struct tally {
	shared_u64 count, bytes, ns;
};

struct spindle {
	shared_u64 next_free;     /* CLOCK_MONOTONIC, ns */
	shared_u64 next_position; /* hash of the file and offset where the previous I/O ended */
	shared_u64 cylinder;      /* where the head is, of 2^32 */
};

struct flash {
	shared_u64 generation; /* what was written under an earlier one is gone; never 0 */
	shared_u64 next_cycle; /* when extents migrate next */
	shared_u64 used;       /* bytes; the upper 16 bits are the generation in which they were written */
	struct tally reads;     /* of callers */
	struct tally raw_reads; /* of these, of raw loads */
	shared_u64 writes, busy_ns;
	shared_u64 hits, misses, evictions;
	shared_u64 bytes_up, bytes_down;
	shared_u64 channel_free[MAX_CHANNELS];
};

struct extent { /* of the tier */
	shared_u64 tag; /* tag_of(), with ON_FLASH */
	shared_u64 heat;
	shared_u64 identity, offset;
};

/* How many extents are touched for the first time since `mark` was last raised: count - base. */
struct unique {
	shared_u64 mark, count, base;
};

struct active_set {
	struct unique interval, window, run;
	shared_u64 window_start, last_window;
	shared_u64 slot[ACTIVE_SLOTS];
};

struct device {
	struct model model;
	struct tally tally[3];              /* by operation: what callers did, and waited */
	struct tally raw[3];                /* of this, what raw loads did */
	shared_u64 busy_ns, late;           /* busy: of the spindles */
	shared_u64 path_ns;                 /* an I/O's way from its caller to us and back: we wait that much less */
	shared_u64 spindle_reads, spindle_writes;
	struct spindle spindle[MAX_SPINDLES];
	struct flash flash;
	/* Bytes in the page cache that await a sync, by file: one process writes WAL, another syncs it. */
	shared_u64 dirty[DIRTY_SLOTS];
	struct active_set active;
	struct extent extent[TIER_SLOTS];
	shared_u64 block[CACHE_SLOTS];
	shared_u8 hand[CACHE_SLOTS / WAYS];
};

struct place {
	uint64_t device;
	char path[PATH_MAX];
};

struct state {
	uint64_t magic, size, places, devices;
	struct place place[MAX_PLACES];
	struct device device[];
};

/* The finalizer of splitmix64. */
static inline uint64_t hash(uint64_t a, uint64_t b)
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#endif
