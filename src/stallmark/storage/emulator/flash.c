/* The flash's channels. */
#include "model.h"

#define CHANNEL_BYTES UINT64_C(8192) /* neighbours of this size are on different channels */

#define USED_BITS 48

void flash_use(struct device *device, uint64_t generation, enum filling filling, uint64_t bytes)
{
	struct flash *flash = &device->flash;
	uint64_t mine = generation << USED_BITS, then = flash->used, now;
	do {
		bool begun = then >> USED_BITS == generation;
		if (!begun && generation != flash->generation)
			return; /* it has been emptied in the meantime */
		uint64_t before = begun && filling == MORE ? then : 0;
		now = mine | ((before + bytes) & ((UINT64_C(1) << USED_BITS) - 1));
	} while (!atomic_compare_exchange_weak(&flash->used, &then, now));
}

uint64_t flash_serve(struct device *device, const struct request *request, uint64_t arrival)
{
	const struct flash_model *model = &device->model.flash;
	uint64_t place = hash(request->identity, request->offset / CHANNEL_BYTES) >> 32;
	uint64_t service = (request->operation == READ ? model->read_ns : model->write_ns) +
			   request->bytes * model->ps_per_byte / 1000;
	device->flash.busy_ns += service;
	if (request->operation != READ)
		device->flash.writes += request->bytes > 0;
	return book(&device->flash.channel_free[place % model->channels], arrival, service);
}
