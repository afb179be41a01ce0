/* The flash tier: which extents are on flash, how hot they are, and their migration. */
#include <stdlib.h>

#include "model.h"

#define ON_FLASH UINT64_C(1)
#define TAG_MASK (~UINT64_C(0xffff))
#define HEAT_OF_AN_IO UINT64_C(256)
#define COLD (HEAT_OF_AN_IO / 8) /* forgotten, if not on flash: one I/O, eight cycles ago */
#define PIECE_BYTES (UINT64_C(1) << 20)

static bool is_current(uint64_t tag, uint64_t generation)
{
	return (tag & ~TAG_MASK) >> 1 == generation;
}

/* The extent of an I/O's first byte; new ones take the place of the coldest in their bucket that is not on flash.
 * NULL: all the others are on flash. */
static struct extent *find(struct device *device, const struct request *request)
{
	uint64_t bytes = device->model.flash.extent_bytes, offset = request->offset / bytes * bytes;
	uint64_t mixed = hash(request->identity, offset), generation = device->flash.generation;
	uint64_t tag = (mixed & TAG_MASK) | generation << 1;
	struct extent *bucket = &device->extent[(mixed & 0xffffffff) % (TIER_SLOTS / WAYS) * WAYS];
	for (int tries = 0; tries < WAYS; tries++) {
		struct extent *victim = NULL;
		uint64_t victims_tag = 0, least = UINT64_MAX;
		for (struct extent *extent = bucket; extent < bucket + WAYS; extent++) {
			uint64_t found = extent->tag;
			if ((found & ~ON_FLASH) == tag)
				return extent;
			uint64_t heat = is_current(found, generation) ? extent->heat + 1 : 0;
			if (heat < least && !(heat && (found & ON_FLASH)))
				victim = extent, victims_tag = found, least = heat;
		}
		if (!victim)
			return NULL;
		if (atomic_compare_exchange_strong(&victim->tag, &victims_tag, tag)) {
			victim->heat = 0;
			victim->identity = request->identity;
			victim->offset = offset;
			return victim;
		}
	}
	return NULL;
}

struct candidate {
	uint64_t heat, tag;
	struct extent *extent;
};

/* False: it is no longer what it was in the survey, as somebody else was faster. */
static bool move(struct device *device, const struct candidate *candidate, uint64_t arrival)
{
	struct extent *extent = candidate->extent;
	uint64_t tag = candidate->tag;
	bool up = !(tag & ON_FLASH);
	if (!atomic_compare_exchange_strong(&extent->tag, &tag, tag ^ ON_FLASH))
		return false;
	uint64_t bytes = device->model.flash.extent_bytes;
	for (uint64_t done = 0; done < bytes; done += PIECE_BYTES) {
		uint64_t left = bytes - done;
		struct request piece = {.identity = extent->identity, .offset = extent->offset + done,
					.bytes = left < PIECE_BYTES ? left : PIECE_BYTES};
		piece.operation = up ? READ : WRITE;
		spindles_serve(device, &piece, arrival);
		piece.operation = up ? WRITE : READ;
		flash_serve(device, &piece, arrival);
	}
	*(up ? &device->flash.bytes_up : &device->flash.bytes_down) += bytes;
	return true;
}

static int by_heat(const void *one, const void *other)
{
	const struct candidate *a = one, *b = other;
	if (a->heat != b->heat)
		return a->heat < b->heat ? -1 : 1;
	return a->extent < b->extent ? -1 : a->extent > b->extent;
}

/* Lists the extents with their heat and cools them: those on flash from the front, the others from the back. */
static void survey(struct device *device, uint64_t generation, struct candidate *list, size_t *on_flash,
		   size_t *below)
{
	*on_flash = *below = 0;
	for (struct extent *extent = device->extent; extent < device->extent + TIER_SLOTS; extent++) {
		uint64_t tag = extent->tag;
		if (!is_current(tag, generation))
			continue;
		uint64_t heat = extent->heat;
		while (!atomic_compare_exchange_weak(&extent->heat, &heat, heat - heat / 4))
			; /* an I/O has heated it, or another extent has begun here with none */
		if (tag & ON_FLASH)
			list[(*on_flash)++] = (struct candidate){heat, tag, extent};
		else if (heat < COLD)
			atomic_compare_exchange_strong(&extent->tag, &tag, 0);
		else
			list[TIER_SLOTS - ++*below] = (struct candidate){heat, tag, extent};
	}
}

/* What is done half when a process is killed in here is completed a cycle later. */
static void migrate(struct device *device, uint64_t arrival)
{
	struct candidate *list = malloc(TIER_SLOTS * sizeof *list);
	if (!list)
		return;
	size_t on_flash, below;
	uint64_t generation = device->flash.generation;
	survey(device, generation, list, &on_flash, &below);
	struct candidate *coldest = list, *end = list + on_flash;
	struct candidate *hottest = list + TIER_SLOTS - 1, *last = list + TIER_SLOTS - below;
	qsort(coldest, on_flash, sizeof *list, by_heat);
	qsort(last, below, sizeof *list, by_heat);

	const struct flash_model *model = &device->model.flash;
	uint64_t room = model->size / model->extent_bytes, moves = model->move / model->extent_bytes;
	for (; moves && hottest >= last && device->flash.generation == generation; moves--, hottest--) {
		if (on_flash >= room) {
			if (coldest == end || 2 * hottest->heat <= 3 * coldest->heat)
				break;
			on_flash -= move(device, coldest++, arrival);
		}
		if (on_flash < room)
			on_flash += move(device, hottest, arrival);
	}
	flash_use(device, generation, IN_ALL, on_flash * model->extent_bytes);
	free(list);
}

/* Whoever comes first after the end of a cycle does its work. */
static void end_cycle(struct device *device, uint64_t arrival)
{
	uint64_t due = device->flash.next_cycle, next = arrival + device->model.flash.cycle_ns;
	if (arrival < due || !atomic_compare_exchange_strong(&device->flash.next_cycle, &due, next))
		return;
	if (due)
		migrate(device, arrival);
}

struct completion tier_serve(struct device *device, const struct request *request, uint64_t arrival)
{
	end_cycle(device, arrival);
	struct extent *extent = find(device, request);
	if (extent && request->operation != SYNC)
		extent->heat += HEAT_OF_AN_IO;
	if (extent && (extent->tag & ON_FLASH))
		return (struct completion){flash_serve(device, request, arrival), true};
	return (struct completion){spindles_serve(device, request, arrival), false};
}
