/*
 * The emulated array: when it will have finished an I/O that arrives now. No clock, no sleep, no I/O in here:
 * times of arrival come in, times of completion go out, and all that is remembered is in struct device.
 *
 * Spindles      A file is striped over them by 1 MiB; each serves first in, first out. It is one number, the time
 *               at which it will be free: start = max(arrival, next_free), next_free = start + service, by
 *               compare-and-swap. An I/O across a stripe boundary goes to the stripe of its first byte. A sync
 *               occupies the spindle of the file's first byte: the flushes of a WAL segment queue behind each
 *               other, so that commits group as on a disk, and a checkpoint's syncs do not stop the whole array.
 * Service       is positioning + bytes / bandwidth; an I/O that continues where its spindle stopped pays the
 *               latter only. Positioning takes a fixed time, or is mechanical: each stripe has a fixed, random
 *               cylinder and angle; the arm takes 0.2 + 1.5 sqrt(distance) of the average seek (whose mean over
 *               random cylinders is 1; the same cylinder takes none), and then the platter turns until the first
 *               byte is under the head.
 * Flash         has channels of its own, each first in, first out; an I/O goes to the channel of its first 8 KiB
 *               and takes a fixed time + bytes / bandwidth.
 * Cache         of reads, in blocks of 8 KiB. A block has a place in one of 16 ways; each such bucket is a clock: its
 *               hand goes round, takes the reference bit from those that have it, and evicts the first that has none.
 *               A block comes without the bit, and has it when it is read or written again. A read of which every
 *               block is there is a hit, and served by flash; any other is a miss, served by its spindle, and fills
 *               the cache: flash is busy with that, from the miss's arrival, the reader does not wait for it. Reads
 *               of more than 64 KiB go past the cache, as arrays let streams. Writes go to the spindles; blocks that
 *               are in the cache are also written there, and nobody waits for it.
 * Tier          Each extent is on flash or on its spindles, and is read and written there; a sync goes where the
 *               file's first byte is, and takes flash as long as a write. Every I/O heats its first extent; at the
 *               end of each cycle a quarter of all heat is lost and the hottest extents move up, into free room or in
 *               exchange for one that has less than two thirds of their heat, at most so many bytes each way. Reading
 *               and writing them is booked at once, on spindles and channels.
 * Active set    Extents of 64 KiB that the server reads or writes, none counted twice in an interval. Of more than
 *               32 GiB in one, some may find no room in the table, and are not counted.
 * Raw loads     share spindles and flash with the server. What they did and waited is also counted apart. Which of the
 *               evictions and migrations were for them is not known.
 *
 * Another array may be engaged under I/O: the device is bare first, then its flash is emptied, then it is the other
 * (arrays.py). What is on its way is served by the one, by the other or by neither. The fields are plain stores of
 * another process, seen in their order on x86-64; other processors may show a new array before all of its fields
 * for as long as that takes.
 */
#ifndef STALLMARK_MODEL_H
#define STALLMARK_MODEL_H

#include "state.h"

struct request {
	enum operation operation;
	bool write_through; /* the write is flushed: it pays a sync, too */
	uint64_t identity;  /* of the file */
	uint64_t offset, bytes;
	bool raw;           /* of a raw load, and not of the server */
};

struct completion {
	uint64_t time;
	bool by_flash;
};

/* Takes an I/O into the queues. */
struct completion device_serve(struct device *, const struct request *, uint64_t arrival);

/* Counts an I/O for which its caller waited so long. */
void device_count(struct device *, const struct request *, bool by_flash, uint64_t waited);

/* The parts. */
uint64_t book(shared_u64 *next_free, uint64_t arrival, uint64_t service);
uint64_t spindles_serve(struct device *, const struct request *, uint64_t arrival);
uint64_t flash_serve(struct device *, const struct request *, uint64_t arrival);
enum filling { MORE, IN_ALL };
/* So many bytes of that generation are on flash; fewer are a negative number of more. */
void flash_use(struct device *, uint64_t generation, enum filling, uint64_t bytes);
struct completion cache_serve(struct device *, const struct request *, uint64_t arrival);
struct completion tier_serve(struct device *, const struct request *, uint64_t arrival);
void active_set_touch(struct active_set *, const struct request *);

#endif
