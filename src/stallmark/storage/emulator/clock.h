/* The clock of the emulated arrays: CLOCK_MONOTONIC, in nanoseconds. */
#ifndef STALLMARK_CLOCK_H
#define STALLMARK_CLOCK_H

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>

static inline uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Waking up takes tens of microseconds, a tenth of a flash read: so the sleep ends earlier by what sleeps of this
 * process have lately been exceeded by, and the rest, if any, is spun, but for whoever needs the CPU. Never returns
 * before the moment. */
static inline void sleep_until(uint64_t moment)
{
	enum { LONGEST_SPIN = 100000, SMOOTHING = 8 };
	static _Thread_local bool precise;
	static _Atomic uint64_t usual;
	if (!precise) { /* the kernel may otherwise add 50 us to save a wake-up; inherited by fork */
		prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
		precise = true;
	}
	uint64_t early = moment - usual;
	if (now() < early) {
		struct timespec time = {.tv_sec = (time_t)(early / 1000000000), .tv_nsec = (long)(early % 1000000000)};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
			; /* a signal does not make a disk faster */
		uint64_t exceeded = now() - early;
		if (exceeded > LONGEST_SPIN)
			exceeded = LONGEST_SPIN;
		usual = (usual * (SMOOTHING - 1) + exceeded) / SMOOTHING;
	}
	while (now() < moment)
		sched_yield();
}

#endif
