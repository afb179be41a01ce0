/* The flash read cache. A slot holds the tag of a block, the generation it was written in, and a reference bit. */
#include "model.h"

#define BLOCK_BYTES UINT64_C(8192)
#define LARGEST_READ (UINT64_C(64) << 10)
#define REFERENCED UINT64_C(1)
#define TAG_MASK (~UINT64_C(0xffff))

struct where {
	shared_u64 *bucket;
	uint64_t generation;
	uint64_t tag; /* with the generation, without the reference bit */
	shared_u8 *hand; /* of the bucket: where the search for a victim begins */
};

static struct where where_of(struct device *device, uint64_t identity, uint64_t block)
{
	/* The generation first: a block of the array that was before must not be taken for one of this. */
	uint64_t mixed = hash(identity, block), generation = device->flash.generation;
	uint64_t slots = device->model.flash.size / BLOCK_BYTES;
	uint64_t buckets = (slots < CACHE_SLOTS ? slots : CACHE_SLOTS) / WAYS;
	uint64_t bucket = (mixed & 0xffffffff) % buckets;
	return (struct where){&device->block[bucket * WAYS], generation, (mixed & TAG_MASK) | generation << 1,
			      &device->hand[bucket]};
}

static bool is_empty(uint64_t slot, struct where where)
{
	return (slot ^ where.tag) & ~TAG_MASK & ~REFERENCED;
}

/* Finds a block and marks it as referenced. */
static bool find(struct where where)
{
	for (int way = 0; way < WAYS; way++) {
		uint64_t slot = where.bucket[way];
		if ((slot & ~REFERENCED) == where.tag) {
			if (!(slot & REFERENCED)) /* failing means that somebody else did it, or took the slot */
				atomic_compare_exchange_strong(&where.bucket[way], &slot, slot | REFERENCED);
			return true;
		}
	}
	return false;
}

/* Takes a slot for a block, if it is still what it was, and nobody has emptied the flash before we looked. */
static bool take(struct device *device, struct where where, shared_u64 *way, uint64_t slot)
{
	return where.generation == device->flash.generation && atomic_compare_exchange_strong(way, &slot, where.tag);
}

/* The first empty slot, or else the first from the hand on that has not been referenced since the hand last passed. */
static void insert(struct device *device, struct where where)
{
	for (int way = 0; way < WAYS; way++) {
		uint64_t slot = where.bucket[way];
		if (is_empty(slot, where) && take(device, where, &where.bucket[way], slot)) {
			flash_use(device, where.generation, MORE, BLOCK_BYTES);
			return;
		}
	}
	unsigned hand = *where.hand;
	for (unsigned end = hand + 2 * WAYS; hand < end; hand++) {
		shared_u64 *way = &where.bucket[hand % WAYS];
		uint64_t slot = *way;
		if (slot & REFERENCED) {
			atomic_compare_exchange_strong(way, &slot, slot & ~REFERENCED);
		} else if (!is_empty(slot, where) && take(device, where, way, slot)) {
			*where.hand = (hand + 1) % WAYS;
			device->flash.evictions++;
			return;
		}
	}
}

/* Of two who missed the same block at once both have inserted it: the first in the bucket stays. */
static void insert_once(struct device *device, struct where where)
{
	insert(device, where);
	bool there = false;
	for (int way = 0; way < WAYS; way++) {
		uint64_t slot = where.bucket[way];
		if ((slot & ~REFERENCED) != where.tag)
			continue;
		if (there && atomic_compare_exchange_strong(&where.bucket[way], &slot, 0))
			flash_use(device, where.generation, MORE, -BLOCK_BYTES);
		there = true;
	}
}

/* Writes blocks to flash; nobody waits for it. */
static void fill(struct device *device, const struct request *request, uint64_t blocks, uint64_t arrival)
{
	if (!blocks)
		return;
	struct request write = {WRITE, false, request->identity, request->offset, blocks * BLOCK_BYTES,
				request->raw};
	flash_serve(device, &write, arrival);
}

struct completion cache_serve(struct device *device, const struct request *request, uint64_t arrival)
{
	uint64_t first = request->offset / BLOCK_BYTES;
	uint64_t end = (request->offset + request->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES, there = 0;
	if (request->operation == SYNC || (request->operation == READ && request->bytes > LARGEST_READ))
		return (struct completion){spindles_serve(device, request, arrival), false};
	for (uint64_t block = first; block < end; block++)
		there += find(where_of(device, request->identity, block));
	if (request->operation == WRITE) {
		fill(device, request, there, arrival);
		return (struct completion){spindles_serve(device, request, arrival), false};
	}
	if (there == end - first) {
		device->flash.hits++;
		return (struct completion){flash_serve(device, request, arrival), true};
	}
	device->flash.misses++;
	for (uint64_t block = first; block < end; block++) {
		struct where where = where_of(device, request->identity, block);
		if (!find(where))
			insert_once(device, where);
	}
	fill(device, request, end - first - there, arrival);
	return (struct completion){spindles_serve(device, request, arrival), false};
}
