/*
 * The emulated array as an nbdkit plugin: a block device that files, file systems and containers can live on.
 *
 *     nbdkit ./stallmark-array.so file=BACKING state=STATE
 *
 * The real I/O is done first, on the backing file; then the reply is held back until the moment at which the array
 * (model.h) would have finished it. The backing file is read and written through the page cache, which is what lets
 * it be faster than the array. A flush is the backing file's fdatasync, and a barrier for the array; a write with
 * FUA is both.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hold.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

enum { THE_FILE = 1 }; /* its identity: there is only one */

static char *file_path, *state_path;
static int file = -1;
static struct device *device;

static int array_config(const char *key, const char *value)
{
	char **path = strcmp(key, "file") == 0 ? &file_path : strcmp(key, "state") == 0 ? &state_path : NULL;
	if (!path) {
		nbdkit_error("unknown parameter '%s'", key);
		return -1;
	}
	*path = nbdkit_realpath(value);
	return *path ? 0 : -1;
}

static int fail(const char *path, const char *why)
{
	nbdkit_error("%s: %s", path, why);
	return -1;
}

static int array_config_complete(void)
{
	return file_path && state_path ? 0 : fail("stallmark-array", "file and state must be given");
}

static int array_get_ready(void)
{
	struct stat status;
	file = open(file_path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return fail(file_path, strerror(errno));
	int fd = open(state_path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) != 0)
		return fail(state_path, strerror(errno));
	size_t size = sizeof(struct state) + sizeof(struct device);
	if ((size_t)status.st_size != size)
		return fail(state_path, "the state file has the wrong size");
	struct state *state = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (state == MAP_FAILED)
		return fail(state_path, strerror(errno));
	if (state->magic != MAGIC || state->devices != 1)
		return fail(state_path, "not a state file of this version");
	device = state->device;
	return 0;
}

static void *array_open(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t array_get_size(void *handle)
{
	struct stat status;
	(void)handle;
	return fstat(file, &status) == 0 ? status.st_size : fail(file_path, strerror(errno));
}

static int array_yes(void *handle)
{
	(void)handle;
	return 1;
}

static int array_can_fua(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

/* Holds the caller back as long as the array works on an I/O that has really been done. */
static int serve(enum operation operation, bool through, uint64_t arrival, uint64_t offset, uint64_t bytes)
{
	struct request request = {operation, through, THE_FILE, offset, bytes, false};
	hold(device, &request, arrival);
	return 0;
}

static int array_pread(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	uint64_t arrival = now(), done = 0;
	(void)handle, (void)flags;
	while (done < count) {
		ssize_t got = pread(file, (char *)buffer + done, count - done, (off_t)(offset + done));
		if (got <= 0) {
			if (got < 0 && errno == EINTR)
				continue;
			return fail(file_path, got ? strerror(errno) : "the backing file has been truncated");
		}
		done += (uint64_t)got;
	}
	return serve(READ, false, arrival, offset, count);
}

static int array_pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	uint64_t arrival = now(), done = 0;
	(void)handle;
	while (done < count) {
		ssize_t put = pwrite(file, (const char *)buffer + done, count - done, (off_t)(offset + done));
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			int error = errno;
			nbdkit_set_error(error);
			return fail(file_path, strerror(error));
		}
		done += (uint64_t)put;
	}
	bool through = flags & NBDKIT_FLAG_FUA;
	if (through && fdatasync(file) != 0)
		return fail(file_path, strerror(errno));
	return serve(WRITE, through, arrival, offset, count);
}

static int array_flush(void *handle, uint32_t flags)
{
	uint64_t arrival = now();
	(void)handle, (void)flags;
	if (fdatasync(file) != 0)
		return fail(file_path, strerror(errno));
	return serve(SYNC, false, arrival, 0, 0);
}

static struct nbdkit_plugin plugin = {
	.name = "stallmark-array",
	.longname = "Stallmark's emulated array",
	.config = array_config,
	.config_complete = array_config_complete,
	.get_ready = array_get_ready,
	.open = array_open,
	.get_size = array_get_size,
	.can_write = array_yes,
	.can_flush = array_yes,
	.is_rotational = array_yes,
	.can_multi_conn = array_yes, /* one file: what was flushed on one connection is flushed on all */
	.can_fua = array_can_fua,
	.pread = array_pread,
	.pwrite = array_pwrite,
	.flush = array_flush,
	.errno_is_preserved = 0,
};

NBDKIT_REGISTER_PLUGIN(plugin)
