/*
 * A device of known slowness, as an LD_PRELOAD interposer for the PostgreSQL server.
 *
 * The real I/O is always done first, unchanged: same result, same errno, same short count. Then the caller
 * is held back until the moment at which the modelled device would have finished it. Nothing is ever
 * locked: a killed process leaves nothing behind but the time it had already booked.
 *
 * Whose I/O     A file belongs to a device if its resolved path lies below one of the device's places. Both
 *               are in the shared state file named by $STALLMARK_SLOW_DEVICES; without that variable every
 *               call passes through. With the variable and a missing or wrong file the process ends with a
 *               message: a server that ran at full speed under the label "slow" would be a false
 *               measurement.
 * O_DIRECT      Reads and writes pay a positioning time, unless the spindle's previous I/O ended where this
 *               one begins, and bytes / bandwidth. fsync of such a file pays sync_ns.
 * Buffered      (WAL, maps, pg_control) Reads and writes are free, because the page cache really answers
 *               them. fsync and fdatasync pay for the bytes written since the last one, by whichever
 *               process, as for one write, and then sync_ns. At most the file's size is charged: a page
 *               written twice is flushed once. A clean file and a directory pay sync_ns, as for a barrier.
 * O_SYNC        and O_DSYNC: writes pay positioning, bytes / bandwidth and sync_ns at once; counted as
 *               writes.
 * Queue         A file is striped over the spindles by 1 MiB; each spindle serves first in, first out. It
 *               is one number, the time at which it will be free: start = max(arrival, next_free),
 *               next_free = start + service, by compare-and-swap. An I/O across a stripe boundary goes to
 *               the stripe of its first byte. A sync occupies the spindle of the file's first byte: the
 *               flushes of a WAL segment queue behind each other, so that commits group as on a disk, and a
 *               checkpoint's syncs do not stop the whole array.
 * Counted       is what the device sees, with or without a model. A failed I/O or a read at the end of the
 *               file does not reach it; buffered I/O reaches it at the sync, as one write. The times are
 *               what the callers waited: their sum is the integral of the queue depth over time.
 * Not covered   posix_fallocate, ftruncate, unlink (metadata); sync_file_range (a hint: the sync pays);
 *               syncfs; copy_file_range (CREATE DATABASE with file_copy_method = clone); stdio; temporary
 *               files (never synced: they live in the page cache); io_uring (do not use it as io_method).
 *
 * The layout of struct state is mirrored in layout.py; the magic number changes with it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "off_t and off64_t must be the same for the aliases below");

enum { MAX_DEVICES = 8, MAX_PLACES = 16, MAX_SPINDLES = 64, DIRTY_SLOTS = 1024, MAX_FILES = 65536 };
#define STRIPE_BYTES (UINT64_C(1) << 20)
#define MAGIC UINT64_C(0x3144534c4c415453) /* "STALLSD1", little-endian */
#define NOWHERE UINT64_C(0)                /* a position that no I/O continues */

/* ---- Shared state -------------------------------------------------------------------------------------- */

typedef _Atomic uint64_t shared_u64;

enum operation { READ, WRITE, SYNC };

struct model { /* spindles == 0: no model, the bare device */
	shared_u64 spindles, positioning_ns[2] /* READ, WRITE */, sync_ns, ps_per_byte;
};

struct tally {
	shared_u64 count, bytes, ns;
};

struct spindle {
	shared_u64 next_free;     /* CLOCK_MONOTONIC, ns */
	shared_u64 next_position; /* hash of the file and offset where the previous I/O ended */
};

struct device {
	struct model model;
	struct tally tally[3]; /* by operation */
	shared_u64 busy_ns, late;
	struct spindle spindle[MAX_SPINDLES];
	/* Bytes in the page cache that await a sync, by file: one process writes WAL, another syncs it. */
	shared_u64 dirty[DIRTY_SLOTS];
};

struct place {
	uint64_t device;
	char path[PATH_MAX];
};

struct state {
	uint64_t magic, size, places;
	struct place place[MAX_PLACES];
	struct device device[MAX_DEVICES];
};

static struct state *state; /* NULL: pass everything through */

/* A wrapper's view of the function it wraps. */
#define REAL(name)                                      \
	({                                              \
		static __typeof__(name) *real;          \
		if (!real)                              \
			real = dlsym(RTLD_NEXT, #name); \
		real;                                   \
	})

static void refuse(const char *path, const char *why)
{
	dprintf(STDERR_FILENO, "stallmark slow device: %s: %s\n", path, why);
	_exit(78); /* EX_CONFIG */
}

__attribute__((constructor)) static void attach(void)
{
	const char *path = getenv("STALLMARK_SLOW_DEVICES");
	if (!path)
		return;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0)
		refuse(path, strerror(errno));
	if (status.st_size != sizeof(struct state)) /* before touching it: beyond its end lies SIGBUS */
		refuse(path, "the state file has the wrong size");
	struct state *map = mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		refuse(path, strerror(errno));
	if (map->magic != MAGIC || map->size != sizeof *map || map->places > MAX_PLACES)
		refuse(path, "not a state file of this version");
	if (access("/proc/self/fd", X_OK) != 0)
		refuse("/proc/self/fd", "needed to tell which device a file is on");
	REAL(close)(fd);
	state = map;
}

/* ---- Which file is this? ------------------------------------------------------------------------------- */

struct file {
	_Atomic bool known;    /* set last */
	bool direct;           /* O_DIRECT: past the page cache */
	bool write_through;    /* O_SYNC or O_DSYNC: each write is flushed */
	struct device *device; /* NULL: not on a slow device */
	uint64_t identity;     /* hash of file system and inode */
};

/* Filled at the first I/O, forgotten when the descriptor is closed, inherited by fork. */
static struct file files[MAX_FILES];

static uint64_t hash(uint64_t a, uint64_t b) /* the finalizer of splitmix64 */
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static struct device *device_of(int fd)
{
	char link[32], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length < 0)
		return NULL;
	path[length] = '\0';
	if (strstr(path, "/pgsql_tmp")) /* never synced: another file's sync would be charged for them */
		return NULL;
	struct place *best = NULL; /* the innermost: the WAL may lie inside the data directory */
	for (struct place *place = state->place; place < state->place + state->places; place++)
		if (is_below(path, place->path) && (!best || strlen(place->path) > strlen(best->path)))
			best = place;
	return best ? &state->device[best->device % MAX_DEVICES] : NULL;
}

static void identify(int fd, struct file *file)
{
	struct stat status;
	int flags = fcntl(fd, F_GETFL);
	file->device = flags >= 0 && fstat(fd, &status) == 0 ? device_of(fd) : NULL;
	if (file->device) {
		file->identity = hash(status.st_dev, status.st_ino);
		file->direct = flags & O_DIRECT;
		file->write_through = flags & O_DSYNC; /* a bit of O_SYNC, too */
	}
	file->known = true;
}

/* The file behind a descriptor, or NULL if it is none of ours. Keeps errno. */
static struct file *lookup(int fd)
{
	if (!state || fd < 0 || fd >= MAX_FILES)
		return NULL;
	struct file *file = &files[fd];
	if (!file->known) {
		int saved = errno;
		identify(fd, file);
		errno = saved;
	}
	return file->device ? file : NULL;
}

static void forget(int fd)
{
	if (fd >= 0 && fd < MAX_FILES)
		files[fd].known = false;
}

/* ---- The device ---------------------------------------------------------------------------------------- */

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void sleep_until(uint64_t moment)
{
	static _Thread_local bool precise;
	if (!precise) { /* the kernel may otherwise add 50 us to save a wake-up; inherited by fork */
		prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
		precise = true;
	}
	struct timespec time = {.tv_sec = (time_t)(moment / 1000000000), .tv_nsec = (long)(moment % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		; /* a signal does not make a disk faster */
}

/* Books the service time on the spindle's queue and returns when it will be over. */
static uint64_t book(struct spindle *spindle, uint64_t arrival, uint64_t service)
{
	uint64_t free = spindle->next_free, finish;
	do
		finish = (free > arrival ? free : arrival) + service;
	while (!atomic_compare_exchange_weak(&spindle->next_free, &free, finish));
	return finish;
}

/* How long a spindle works on an I/O; moves its head. */
static uint64_t service_time(struct model *model, struct spindle *spindle, const struct file *file,
			     enum operation operation, uint64_t offset, uint64_t bytes)
{
	uint64_t transfer = bytes * model->ps_per_byte / 1000;
	if (operation == SYNC) {
		spindle->next_position = NOWHERE;
		return (bytes ? model->positioning_ns[WRITE] + transfer : 0) + model->sync_ns;
	}
	uint64_t end = hash(file->identity, offset + bytes);
	bool sequential = atomic_exchange(&spindle->next_position, end) == hash(file->identity, offset);
	return (sequential ? 0 : model->positioning_ns[operation]) + transfer +
	       (operation == WRITE && file->write_through ? model->sync_ns : 0);
}

/* Takes the caller through the device: it arrived then, and the real I/O has already been done. */
static void serve(const struct file *file, enum operation operation, uint64_t arrival, uint64_t offset,
		  uint64_t bytes)
{
	struct device *device = file->device;
	uint64_t spindles = device->model.spindles;
	if (spindles) {
		struct spindle *spindle = &device->spindle[(file->identity + offset / STRIPE_BYTES) % spindles];
		uint64_t service = service_time(&device->model, spindle, file, operation, offset, bytes);
		uint64_t finish = book(spindle, arrival, service);
		device->busy_ns += service;
		if (now() < finish)
			sleep_until(finish);
		else
			device->late++;
	}
	struct tally *tally = &device->tally[operation];
	tally->count++;
	tally->ns += now() - arrival;
	if (operation == SYNC) {
		tally = &device->tally[WRITE];
		tally->count += bytes > 0;
	}
	tally->bytes += bytes;
}

static shared_u64 *dirty_bytes(const struct file *file)
{
	return &file->device->dirty[file->identity % DIRTY_SLOTS];
}

/* ---- The wrapped functions ----------------------------------------------------------------------------- */

#define CURRENT_OFFSET (-1) /* the descriptor's own, also for preadv2 and pwritev2 */

static ssize_t finish_transfer(int fd, enum operation operation, uint64_t arrival, off_t offset, ssize_t done)
{
	struct file *file = done > 0 ? lookup(fd) : NULL;
	if (!file)
		return done;
	int saved = errno;
	if (file->direct || (operation == WRITE && file->write_through)) {
		if (offset == CURRENT_OFFSET)
			offset = lseek(fd, 0, SEEK_CUR) - done;
		serve(file, operation, arrival, (uint64_t)offset, (uint64_t)done);
	} else if (operation == WRITE) {
		*dirty_bytes(file) += (uint64_t)done;
	}
	errno = saved;
	return done;
}

static int flush(int fd, int (*real_sync)(int))
{
	struct file *file = lookup(fd);
	if (!file)
		return real_sync(fd);
	uint64_t arrival = now();
	uint64_t dirty = atomic_exchange(dirty_bytes(file), 0); /* before: what comes later, a later sync pays */
	int result = real_sync(fd);
	int saved = errno;
	if (result == 0) {
		struct stat status;
		if (dirty && fstat(fd, &status) == 0 && dirty > (uint64_t)status.st_size)
			dirty = (uint64_t)status.st_size;
		serve(file, SYNC, arrival, 0, dirty);
	} else {
		*dirty_bytes(file) += dirty;
	}
	errno = saved;
	return result;
}

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(name) __attribute__((visibility("default"), alias(name)))

#define TRANSFER(operation, offset, real_call)                              \
	({                                                                  \
		uint64_t arrival = now();                                   \
		finish_transfer(fd, operation, arrival, offset, real_call); \
	})

EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
	return TRANSFER(READ, CURRENT_OFFSET, REAL(read)(fd, buffer, size));
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	return TRANSFER(READ, CURRENT_OFFSET, REAL(readv)(fd, parts, count));
}

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	return TRANSFER(READ, offset, REAL(pread)(fd, buffer, size, offset));
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
	return TRANSFER(READ, offset, REAL(preadv)(fd, parts, count, offset));
}

EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	return TRANSFER(READ, offset, REAL(preadv2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t write(int fd, const void *buffer, size_t size)
{
	return TRANSFER(WRITE, CURRENT_OFFSET, REAL(write)(fd, buffer, size));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return TRANSFER(WRITE, CURRENT_OFFSET, REAL(writev)(fd, parts, count));
}

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
	return TRANSFER(WRITE, offset, REAL(pwrite)(fd, buffer, size, offset));
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	return TRANSFER(WRITE, offset, REAL(pwritev)(fd, parts, count, offset));
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	return TRANSFER(WRITE, offset, REAL(pwritev2)(fd, parts, count, offset, flags));
}

EXPORT int fsync(int fd) { return flush(fd, REAL(fsync)); }
EXPORT int fdatasync(int fd) { return flush(fd, REAL(fdatasync)); }

/* A descriptor changes its meaning only by being closed first; opening needs no wrapper. */

EXPORT int close(int fd)
{
	forget(fd);
	return REAL(close)(fd);
}

EXPORT int fclose(FILE *stream)
{
	forget(fileno(stream));
	return REAL(fclose)(stream);
}

EXPORT int dup2(int from, int to)
{
	if (from != to)
		forget(to);
	return REAL(dup2)(from, to);
}

EXPORT int dup3(int from, int to, int flags)
{
	forget(to);
	return REAL(dup3)(from, to, flags);
}

/* glibc's names for programs compiled with 64-bit file offsets. */
ALIAS("pread") ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset);
ALIAS("preadv") ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset);
ALIAS("preadv2") ssize_t preadv64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags);
ALIAS("pwrite") ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset);
ALIAS("pwritev") ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset);
ALIAS("pwritev2") ssize_t pwritev64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags);
