/* The spindles: striping, queues, heads and platters. */
#include <math.h>

#include "model.h"

#define STRIPE_BYTES (UINT64_C(1) << 20)
#define NOWHERE UINT64_C(0) /* a position that no I/O continues */
#define TURN 4294967296.0   /* cylinders and angles are fractions of 2^32 */

/* What of a seek does not depend on its distance, and what grows with its square root: together 1 on average,
 * since the mean root of the distance of two random points is 8/15. */
#define SETTLE 0.2
#define STROKE ((1 - SETTLE) * 15 / 8)

/* Where an I/O begins: constant for each stripe of a file. */
struct position {
	uint32_t cylinder, angle;
};

static struct position position_of(const struct model *model, uint64_t revolution, const struct request *request)
{
	uint64_t stripe = hash(~request->identity, request->offset / STRIPE_BYTES);
	/* What passes under the head in one turn is what is transferred in that time. */
	double track_bytes = (double)revolution * 1000 / (double)model->ps_per_byte;
	double turns = (double)(request->offset % STRIPE_BYTES) / track_bytes;
	uint32_t angle = (uint32_t)(uint64_t)((turns - floor(turns)) * TURN) + (uint32_t)stripe;
	return (struct position){.cylinder = (uint32_t)(stripe >> 32), .angle = angle};
}

/* How long the arm moves and the platter turns, from `start` on. */
static uint64_t mechanics(const struct model *model, uint64_t revolution, uint32_t from, struct position to,
			  uint64_t start)
{
	uint64_t seek = 0;
	if (from != to.cylinder) {
		double distance = (from > to.cylinder ? from - to.cylinder : to.cylinder - from) / TURN;
		seek = (uint64_t)((double)model->seek_ns * (SETTLE + STROKE * sqrt(distance)));
	}
	uint64_t target = (uint64_t)(to.angle / TURN * (double)revolution);
	uint64_t angle = (start + seek) % revolution;
	return seek + (target + revolution - angle) % revolution;
}

uint64_t spindles_serve(struct device *device, const struct request *request, uint64_t arrival)
{
	const struct model *model = &device->model;
	/* Each is read once: it may be another array's by the next time. */
	uint64_t spindles = model->spindles, revolution = model->revolution_ns;
	if (!spindles) /* the model has just been taken away */
		return arrival;
	uint64_t number = request->identity + request->offset / STRIPE_BYTES;
	struct spindle *spindle = &device->spindle[number % spindles];
	enum operation operation = request->operation;
	uint64_t transfer = request->bytes * model->ps_per_byte / 1000;
	bool flushed = operation == SYNC || (operation == WRITE && request->write_through);
	uint64_t service = transfer + (flushed ? model->sync_ns : 0);

	bool positions = request->bytes > 0; /* a barrier does not move the head */
	uint64_t end = operation == SYNC ? NOWHERE : hash(request->identity, request->offset + request->bytes);
	uint64_t stopped = atomic_exchange(&spindle->next_position, end);
	if (operation != SYNC && stopped == hash(request->identity, request->offset))
		positions = false;

	if (operation == READ)
		device->spindle_reads++;
	else
		device->spindle_writes += request->bytes > 0;

	uint64_t finish;
	if (positions && revolution) {
		struct position to = position_of(model, revolution, request);
		uint32_t from = (uint32_t)atomic_exchange(&spindle->cylinder, to.cylinder);
		uint64_t free = spindle->next_free, total;
		do {
			uint64_t start = free > arrival ? free : arrival;
			total = mechanics(model, revolution, from, to, start) + service;
			finish = start + total;
		} while (!atomic_compare_exchange_weak(&spindle->next_free, &free, finish));
		service = total;
	} else {
		if (positions)
			service += model->positioning_ns[operation == READ ? READ : WRITE];
		finish = book(&spindle->next_free, arrival, service);
	}
	device->busy_ns += service;
	return finish;
}
