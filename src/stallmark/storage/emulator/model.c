/* The way of an I/O through the emulated array. */
#include "model.h"

struct completion device_serve(struct device *device, const struct request *request, uint64_t arrival)
{
	/* Which bytes a sync flushes is not known. */
	if (request->operation != SYNC && !request->raw)
		active_set_touch(&device->active, request);
	if (!device->model.spindles)
		return (struct completion){arrival, false};
	switch (device->model.flash.use) {
	case CACHE:
		return cache_serve(device, request, arrival);
	case TIER:
		return tier_serve(device, request, arrival);
	default:
		return (struct completion){spindles_serve(device, request, arrival), false};
	}
}

static void count(struct tally tallies[3], const struct request *request, uint64_t waited)
{
	struct tally *tally = &tallies[request->operation];
	tally->count++;
	tally->ns += waited;
	if (request->operation == SYNC) {
		tally = &tallies[WRITE];
		tally->count += request->bytes > 0;
	}
	tally->bytes += request->bytes;
}

static void count_read(struct tally *tally, const struct request *request, uint64_t waited)
{
	tally->count++;
	tally->bytes += request->bytes;
	tally->ns += waited;
}

void device_count(struct device *device, const struct request *request, bool by_flash, uint64_t waited)
{
	count(device->tally, request, waited);
	if (request->raw)
		count(device->raw, request, waited);
	if (by_flash && request->operation == READ) {
		count_read(&device->flash.reads, request, waited);
		if (request->raw)
			count_read(&device->flash.raw_reads, request, waited);
	}
}

uint64_t book(shared_u64 *next_free, uint64_t arrival, uint64_t service)
{
	uint64_t free = *next_free, finish;
	do
		finish = (free > arrival ? free : arrival) + service;
	while (!atomic_compare_exchange_weak(next_free, &free, finish));
	return finish;
}
