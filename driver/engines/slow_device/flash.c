/* The flash's channels. */
#include "model.h"

#define CHANNEL_BYTES UINT64_C(8192) /* neighbours of this size are on different channels */

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
