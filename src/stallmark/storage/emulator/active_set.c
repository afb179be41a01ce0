/*
 * Which extents are touched: in the sampler's interval, in its longer window, and since the run began.
 * A slot holds the tag of an extent and the marks of the three in which it was last touched; who finds an older mark
 * writes the new one by compare-and-swap, and counts it. Marks wrap: an extent that was last touched exactly as many
 * marks ago is overlooked.
 */
#include <stddef.h>

#include "model.h"

#define EXTENT_BYTES (UINT64_C(64) << 10)

enum { INTERVAL_BITS = 16, WINDOW_BITS = 8, RUN_BITS = 8 };

#define BITS(mark, bits, shift) (((mark) & ((UINT64_C(1) << (bits)) - 1)) << (shift))
#define RUN_SHIFT (INTERVAL_BITS + WINDOW_BITS)
#define TAG_SHIFT (RUN_SHIFT + RUN_BITS)

/* Counts what of `now` differs from `then`. */
static void count(struct active_set *set, uint64_t then, uint64_t now)
{
	uint64_t differs = then ^ now;
	set->interval.count += (differs & BITS(UINT64_MAX, INTERVAL_BITS, 0)) != 0;
	set->window.count += (differs & BITS(UINT64_MAX, WINDOW_BITS, INTERVAL_BITS)) != 0;
	set->run.count += (differs & BITS(UINT64_MAX, RUN_BITS, RUN_SHIFT)) != 0;
}

static void touch(struct active_set *set, uint64_t identity, uint64_t extent)
{
	uint64_t mixed = hash(identity, extent), tag = (mixed >> TAG_SHIFT) | 1; /* never an empty slot's */
	uint64_t now = tag << TAG_SHIFT | BITS(set->run.mark, RUN_BITS, RUN_SHIFT) |
		       BITS(set->window.mark, WINDOW_BITS, INTERVAL_BITS) |
		       BITS(set->interval.mark, INTERVAL_BITS, 0);
	shared_u64 *bucket = &set->slot[(mixed & UINT32_MAX) % (ACTIVE_SLOTS / WAYS) * WAYS];
	for (int tries = 0; tries < WAYS; tries++) {
		shared_u64 *victim = NULL;
		uint64_t victims = 0, age = 0;
		for (shared_u64 *slot = bucket; slot < bucket + WAYS; slot++) {
			uint64_t then = *slot;
			if (then == now)
				return;
			if (then >> TAG_SHIFT == tag) {
				if (atomic_compare_exchange_strong(slot, &then, now))
					count(set, then, now);
				return; /* or somebody else has just touched it */
			}
			uint64_t its_age = then ? 1 + BITS(now - then, INTERVAL_BITS, 0) : UINT64_MAX;
			if (its_age > age)
				victim = slot, victims = then, age = its_age;
		}
		if (atomic_compare_exchange_strong(victim, &victims, now)) {
			/* One that was touched in the same interval leaves its count to us: none is counted twice. */
			count(set, victims ? victims : ~now, now);
			return;
		}
	}
}

void active_set_touch(struct active_set *set, const struct request *request)
{
	uint64_t end = request->offset + request->bytes;
	for (uint64_t extent = request->offset / EXTENT_BYTES; extent * EXTENT_BYTES < end; extent++)
		touch(set, request->identity, extent);
}
