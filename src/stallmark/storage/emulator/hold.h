/* Holds the caller of an I/O back for as long as the emulated array works on it. */
#ifndef STALLMARK_HOLD_H
#define STALLMARK_HOLD_H

#include "clock.h"
#include "model.h"

/* The I/O arrived then, and has really been done since. */
static inline void hold(struct device *device, const struct request *request, uint64_t arrival)
{
	struct completion completion = device_serve(device, request, arrival);
	uint64_t moment = completion.time - device->path_ns;
	if (now() < moment)
		sleep_until(moment);
	else if (completion.time > arrival) /* the bare device takes no time of ours */
		device->late++;
	device_count(device, request, completion.by_flash, now() - arrival + device->path_ns);
}

#endif
