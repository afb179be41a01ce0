/* Which file is behind a descriptor, and which device is it on? */
#ifndef STALLMARK_FILES_H
#define STALLMARK_FILES_H

#include "state.h"

struct file {
	_Atomic bool known;    /* set last */
	bool direct;           /* O_DIRECT: past the page cache */
	bool write_through;    /* O_SYNC or O_DSYNC: each write is flushed */
	struct device *device; /* NULL: not on an emulated array */
	uint64_t identity;     /* hash of file system and inode */
};

/* The file behind a descriptor, or NULL if it is on none of the devices (of which there are none if `state` is
 * NULL). Keeps errno. */
struct file *file_of(struct state *state, int fd);

/* A descriptor has been closed. */
void file_forget(int fd);

#endif
