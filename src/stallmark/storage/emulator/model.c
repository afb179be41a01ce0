/* The way of an I/O through the emulated array. */
#include "model.h"

struct completion device_serve(struct device *device, const struct request *request, uint64_t arrival)
{
	/* Which bytes a sync flushes is not known. */
	if (request->operation != SYNC)
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

void device_count(struct device *device, const struct request *request, bool by_flash, uint64_t waited)
{
	struct tally *tally = &device->tally[request->operation];
	tally->count++;
	tally->ns += waited;
	if (request->operation == SYNC) {
		tally = &device->tally[WRITE];
		tally->count += request->bytes > 0;
	}
	tally->bytes += request->bytes;
	if (by_flash && request->operation == READ) {
		device->flash.reads.count++;
		device->flash.reads.bytes += request->bytes;
		device->flash.reads.ns += waited;
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
