/*
 * Gives nbdfuse's FUSE more than libfuse's default of 10 threads, which nbdfuse has no option for: with it, at most 10
 * I/Os would be outstanding at the array. Preloaded into nbdfuse alone. fuse_loop_mt_32 is what libfuse from 3.12 on calls
 * the function for programs that, as nbdfuse, were written for an older one; where it is not called, nothing changes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

enum { THREADS = 128 };

__attribute__((visibility("default"))) int fuse_loop_mt_32(void *fuse, void *config)
{
	void *(*create)(void) = dlsym(RTLD_NEXT, "fuse_loop_cfg_create");
	void (*set_threads)(void *, unsigned) = dlsym(RTLD_NEXT, "fuse_loop_cfg_set_max_threads");
	int (*loop)(void *, void *) = dlvsym(RTLD_NEXT, "fuse_loop_mt", "FUSE_3.12");
	if (!create || !set_threads || !loop) {
		loop = dlsym(RTLD_NEXT, "fuse_loop_mt_32");
		return loop(fuse, config);
	}
	void *ours = create();
	set_threads(ours, THREADS);
	return loop(fuse, ours);
}
