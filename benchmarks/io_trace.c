/*
 * Where and when the processes of a server read and write its data files: an LD_PRELOAD library that stands before the
 * interposer of emulated arrays, and so sees what a caller waits for.
 *
 * Every process writes its events into a file of its own in $STALLMARK_TRACE, named by its number, sparse and mapped:
 * nothing is lost when it is killed. Times are of CLOCK_REALTIME. Traced are direct I/O and syncs of what lies below
 * base/ and global/, as the device "data" is slowed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum operation { READ, WRITE, SYNC };
enum { MOST = 1 << 22 };

struct event {
	uint64_t begun, ended, file, offset;
	uint32_t bytes, operation;
};

static struct event *events; /* of the process `owner` */
static pid_t owner;
static size_t count;

#define REAL(name)                                      \
	({                                              \
		static __typeof__(name) *real;          \
		if (!real)                              \
			real = dlsym(RTLD_NEXT, #name); \
		real;                                   \
	})

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool begin_file(void)
{
	const char *folder = getenv("STALLMARK_TRACE");
	char path[4096];
	owner = getpid();
	count = 0;
	events = NULL;
	if (!folder || snprintf(path, sizeof path, "%s/%d", folder, owner) >= (int)sizeof path)
		return false;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	void *map = MAP_FAILED;
	if (ftruncate(fd, MOST * sizeof *events) == 0)
		map = mmap(NULL, MOST * sizeof *events, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REAL(close)(fd);
	events = map == MAP_FAILED ? NULL : map;
	return events;
}

/* Below base/ or global/, and of direct I/O (`sync`: any). */
static bool is_traced(int fd, bool sync, uint64_t *file)
{
	char link[32], path[4096];
	struct stat status;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length < 0 || fstat(fd, &status) != 0)
		return false;
	path[length] = '\0';
	if (strstr(path, "/pgsql_tmp") || !(strstr(path, "/base/") || strstr(path, "/global/")))
		return false;
	*file = status.st_ino;
	return sync || (fcntl(fd, F_GETFL) & O_DIRECT);
}

static ssize_t note(int fd, enum operation operation, uint64_t begun, off_t offset, ssize_t done)
{
	int saved = errno;
	uint64_t ended = now(), file;
	if ((done > 0 || (operation == SYNC && done == 0)) && is_traced(fd, operation == SYNC, &file)) {
		if (owner != getpid() && !begin_file())
			_exit(78);
		if (count < MOST)
			events[count++] = (struct event){
				begun, ended, file, (uint64_t)offset, operation == SYNC ? 0 : (uint32_t)done, operation};
	}
	errno = saved;
	return done;
}

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(name) __attribute__((visibility("default"), alias(name)))
#define NOTED(operation, offset, real_call)                      \
	({                                                       \
		uint64_t begun = now();                          \
		note(fd, operation, begun, offset, (real_call)); \
	})

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	return NOTED(READ, offset, REAL(pread)(fd, buffer, size, offset));
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int n, off_t offset)
{
	return NOTED(READ, offset, REAL(preadv)(fd, parts, n, offset));
}

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
	return NOTED(WRITE, offset, REAL(pwrite)(fd, buffer, size, offset));
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t offset)
{
	return NOTED(WRITE, offset, REAL(pwritev)(fd, parts, n, offset));
}

EXPORT int fsync(int fd) { return (int)NOTED(SYNC, 0, REAL(fsync)(fd)); }
EXPORT int fdatasync(int fd) { return (int)NOTED(SYNC, 0, REAL(fdatasync)(fd)); }

/* glibc's names for programs compiled with 64-bit file offsets. */
ALIAS("pread") ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset);
ALIAS("preadv") ssize_t preadv64(int fd, const struct iovec *parts, int n, off64_t offset);
ALIAS("pwrite") ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset);
ALIAS("pwritev") ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t offset);
