#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 65536 };

/* Filled at the first I/O, forgotten when the descriptor is closed, inherited by fork. */
static struct file files[MAX_FILES];

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static struct device *device_of(struct state *state, int fd)
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
	return best ? &state->device[best->device % state->devices] : NULL;
}

static void identify(struct state *state, int fd, struct file *file)
{
	struct stat status;
	int flags = fcntl(fd, F_GETFL);
	file->device = flags >= 0 && fstat(fd, &status) == 0 ? device_of(state, fd) : NULL;
	if (file->device) {
		file->identity = hash(status.st_dev, status.st_ino);
		file->direct = flags & O_DIRECT;
		file->write_through = flags & O_DSYNC; /* a bit of O_SYNC, too */
	}
	file->known = true;
}

struct file *file_of(struct state *state, int fd)
{
	if (!state || fd < 0 || fd >= MAX_FILES)
		return NULL;
	struct file *file = &files[fd];
	if (!file->known) {
		int saved = errno;
		identify(state, fd, file);
		errno = saved;
	}
	return file->device ? file : NULL;
}

void file_forget(int fd)
{
	if (fd >= 0 && fd < MAX_FILES)
		files[fd].known = false;
}
