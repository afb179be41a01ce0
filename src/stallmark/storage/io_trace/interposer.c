/*
 * The reads, writes and syncs of a server's data files, as its processes wait for them: an LD_PRELOAD library that
 * stands before the interposer of emulated arrays.
 *
 * All processes write into one ring in the file that $STALLMARK_IO_TRACE names, while `on` is set. A slot is claimed
 * only when the reader has emptied it; an I/O that finds none is counted as lost. A slot is complete when it has its
 * number: a process killed in between leaves one that never gets it. Traced are direct I/O and syncs of files below
 * base/, global/ and pg_tblspc/. Offsets of read() and write() are not: PostgreSQL does not use these for data files.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
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

#define MAGIC UINT64_C(0x3154534f49545453) /* mirrored in __init__.py, as the layout is */

enum operation { READ, WRITE, SYNC };
typedef _Atomic uint64_t shared_u64;

struct event {
	shared_u64 number; /* from 1; of an empty slot that of an earlier round */
	uint64_t begun_us, file, offset; /* CLOCK_MONOTONIC; inode */
	uint32_t took_us, bytes, process, operation;
};

struct ring {
	uint64_t magic, slots;
	shared_u64 on, head, tail, lost;
	uint64_t unused[2];
	struct event slot[];
};

static struct ring *ring;

#define REAL(name)                                      \
	({                                              \
		static __typeof__(name) *real;          \
		if (!real)                              \
			real = dlsym(RTLD_NEXT, #name); \
		real;                                   \
	})

__attribute__((constructor)) static void attach(void)
{
	const char *path = getenv("STALLMARK_IO_TRACE");
	if (!path)
		return;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;
	struct ring *map = MAP_FAILED;
	if (fd >= 0 && fstat(fd, &status) == 0 && (size_t)status.st_size > sizeof(struct ring))
		map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || map->magic != MAGIC ||
	    (size_t)status.st_size != sizeof(struct ring) + map->slots * sizeof(struct event)) {
		dprintf(STDERR_FILENO, "stallmark trace: %s: not a trace of this version\n", path);
		_exit(78); /* EX_CONFIG: a server that is not traced would look like one that does nothing */
	}
	REAL(close)(fd);
	ring = map;
}

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool is_traced(int fd, bool sync, uint64_t *file)
{
	char link[32], path[4096];
	struct stat status;
	if (!sync && !(fcntl(fd, F_GETFL) & O_DIRECT))
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length < 0 || fstat(fd, &status) != 0)
		return false;
	path[length] = '\0';
	*file = status.st_ino;
	return (strstr(path, "/base/") || strstr(path, "/global/") || strstr(path, "/pg_tblspc/")) &&
	       !strstr(path, "/pgsql_tmp");
}

static void add(struct event event)
{
	uint64_t head = ring->head;
	do {
		if (head - ring->tail >= ring->slots) {
			ring->lost++;
			return;
		}
	} while (!atomic_compare_exchange_weak(&ring->head, &head, head + 1));
	struct event *slot = &ring->slot[head % ring->slots];
	memcpy((char *)slot + sizeof slot->number, (char *)&event + sizeof event.number,
	       sizeof event - sizeof event.number);
	atomic_store(&slot->number, head + 1);
}

static ssize_t note(int fd, enum operation operation, uint64_t begun, off_t offset, ssize_t done)
{
	int saved = errno;
	bool sync = operation == SYNC;
	uint64_t file;
	if (begun && (done > 0 || (sync && done == 0)) && is_traced(fd, sync, &file)) {
		uint64_t took = now_us() - begun;
		add((struct event){0, begun, file, (uint64_t)offset, took < UINT32_MAX ? (uint32_t)took : UINT32_MAX,
				   sync ? 0 : (uint32_t)done, (uint32_t)getpid(), operation});
	}
	errno = saved;
	return done;
}

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(name) __attribute__((visibility("default"), alias(name)))
#define NOTED(operation, offset, real_call)                        \
	({                                                         \
		uint64_t begun = ring && ring->on ? now_us() : 0;  \
		note(fd, operation, begun, offset, (real_call));   \
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
