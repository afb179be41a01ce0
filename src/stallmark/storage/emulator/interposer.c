/*
 * The emulated arrays as an LD_PRELOAD interposer for the PostgreSQL server.
 *
 * The real I/O is always done first, unchanged: same result, same errno, same short count. Then the caller
 * is held back until the moment at which the emulated array (model.h) would have finished it.
 *
 * Whose I/O     A file belongs to a device if its resolved path lies below one of the device's places. Both
 *               are in the shared state file named by $STALLMARK_EMULATED_ARRAYS; without that variable every
 *               call passes through. With the variable and a missing or wrong file the process ends with a
 *               message: a server that ran at full speed under the label "slow" would be a false
 *               measurement.
 * O_DIRECT      Reads and writes go to the device. fsync of such a file is a barrier.
 * Buffered      (WAL, maps, pg_control) Reads and writes are free, because the page cache really answers
 *               them. fsync and fdatasync pay for the bytes written since the last one, by whichever
 *               process, as for one write, and then for a barrier. At most the file's size is charged: a page
 *               written twice is flushed once. A clean file and a directory pay for the barrier alone.
 * O_SYNC        and O_DSYNC: writes go to the device at once, and pay for a barrier too; counted as writes.
 * Counted       is what the device sees, with or without a model. A failed I/O or a read at the end of the
 *               file does not reach it; buffered I/O reaches it at the sync, as one write. The times are
 *               what the callers waited: their sum is the integral of the queue depth over time.
 * Raw loads     are the processes that have $STALLMARK_RAW_LOAD: what they do is also counted apart.
 * Not covered   posix_fallocate, ftruncate, unlink (metadata); sync_file_range (a hint: the sync pays);
 *               syncfs; copy_file_range (CREATE DATABASE with file_copy_method = clone); stdio; temporary
 *               files (never synced: they live in the page cache); io_uring (do not use it as io_method).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files.h"
#include "hold.h"

_Static_assert(sizeof(off_t) == 8, "off_t and off64_t must be the same for the aliases below");

static struct state *state; /* NULL: pass everything through */
static bool raw;            /* this process is a raw load */

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
	dprintf(STDERR_FILENO, "stallmark emulated array: %s: %s\n", path, why);
	_exit(78); /* EX_CONFIG */
}

__attribute__((constructor)) static void attach(void)
{
	const char *path = getenv("STALLMARK_EMULATED_ARRAYS");
	if (!path)
		return;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0)
		refuse(path, strerror(errno));
	size_t size = (size_t)status.st_size;
	if (size < sizeof(struct state)) /* before touching it: beyond its end lies SIGBUS */
		refuse(path, "the state file has the wrong size");
	struct state *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		refuse(path, strerror(errno));
	if (map->magic != MAGIC || map->places > MAX_PLACES || !map->devices || map->devices > MAX_DEVICES)
		refuse(path, "not a state file of this version");
	if (map->size != size || size != sizeof(struct state) + map->devices * sizeof(struct device))
		refuse(path, "the state file has the wrong size");
	if (access("/proc/self/fd", X_OK) != 0)
		refuse("/proc/self/fd", "needed to tell which device a file is on");
	REAL(close)(fd);
	raw = getenv("STALLMARK_RAW_LOAD") != NULL;
	state = map;
}

/* ---- The device ---------------------------------------------------------------------------------------- */

/* Takes the caller through the device: it arrived then, and the real I/O has already been done. */
static void serve(const struct file *file, enum operation operation, uint64_t arrival, uint64_t offset,
		  uint64_t bytes)
{
	struct request request = {operation, file->write_through, file->identity, offset, bytes, raw};
	hold(file->device, &request, arrival);
}

static shared_u64 *dirty_bytes(const struct file *file)
{
	return &file->device->dirty[file->identity % DIRTY_SLOTS];
}

/* ---- The wrapped functions ----------------------------------------------------------------------------- */

#define CURRENT_OFFSET (-1) /* the descriptor's own, also for preadv2 and pwritev2 */

static ssize_t finish_transfer(int fd, enum operation operation, uint64_t arrival, off_t offset, ssize_t done)
{
	struct file *file = done > 0 ? file_of(state, fd) : NULL;
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
	struct file *file = file_of(state, fd);
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
	file_forget(fd);
	return REAL(close)(fd);
}

EXPORT int fclose(FILE *stream)
{
	file_forget(fileno(stream));
	return REAL(fclose)(stream);
}

EXPORT int dup2(int from, int to)
{
	if (from != to)
		file_forget(to);
	return REAL(dup2)(from, to);
}

EXPORT int dup3(int from, int to, int flags)
{
	file_forget(to);
	return REAL(dup3)(from, to, flags);
}

/* glibc's names for programs compiled with 64-bit file offsets. */
ALIAS("pread") ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset);
ALIAS("preadv") ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset);
ALIAS("preadv2") ssize_t preadv64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags);
ALIAS("pwrite") ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset);
ALIAS("pwritev") ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset);
ALIAS("pwritev2") ssize_t pwritev64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags);
