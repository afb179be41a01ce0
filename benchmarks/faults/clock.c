/* The clocks of a process, set wrong: preloaded, it reads from the file of FAULTS_CLOCK, at each reading, by how many
   nanoseconds the wall clock is off, and how many times as fast clocks go. The monotonic clock is never off, as on a
   machine whose time is set. Where clocks go faster, waits are as much shorter. The CPU's clocks, and the raw one, stay
   as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name); real; })

struct clocks {
    int64_t offset_ns, speed, wall_ns, monotonic_ns; /* from the last two on they go faster */
};
static const struct clocks right = {0, 1, 0, 0};
static const volatile struct clocks *clocks = &right;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(0, sizeof *clocks, PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) clocks = mapped;
        close(file);
    }
}

static int64_t ns_of(struct timespec one) { return one.tv_sec * SECOND + one.tv_nsec; }
static struct timespec as_time(int64_t ns) { return (struct timespec){ns / SECOND, ns % SECOND}; }
static int is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }
static int is_known(clockid_t clock) {
    return is_wall(clock) || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME;
}

/* Waits are rounded up: one that ended too early would be begun anew at once, again and again. */
static int64_t shorter(int64_t wait) { return wait > 0 ? (wait + clocks->speed - 1) / clocks->speed : wait; }

static int64_t shown(clockid_t clock, int64_t ns) {
    int64_t from = is_wall(clock) ? clocks->wall_ns : clocks->monotonic_ns;
    return from + (ns - from) * clocks->speed + (is_wall(clock) ? clocks->offset_ns : 0);
}

static struct timespec deadline(clockid_t clock, const struct timespec *at) {
    int64_t from = is_wall(clock) ? clocks->wall_ns : clocks->monotonic_ns;
    return as_time(from + shorter(ns_of(*at) - (is_wall(clock) ? clocks->offset_ns : 0) - from));
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = REAL(clock_gettime)(clock, now);
    if (!failed && is_known(clock)) *now = as_time(shown(clock, ns_of(*now)));
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wait, struct timespec *left) {
    struct timespec real = flags & TIMER_ABSTIME ? deadline(clock, wait) : as_time(shorter(ns_of(*wait)));
    int failed = REAL(clock_nanosleep)(clock, flags, is_known(clock) ? &real : wait, left);
    if (failed && left && is_known(clock) && !(flags & TIMER_ABSTIME)) *left = as_time(ns_of(*left) * clocks->speed);
    return failed;
}

int nanosleep(const struct timespec *wait, struct timespec *left) {
    struct timespec real = as_time(shorter(ns_of(*wait)));
    int failed = REAL(nanosleep)(&real, left);
    if (failed && left) *left = as_time(ns_of(*left) * clocks->speed);
    return failed;
}

int usleep(useconds_t wait) { return REAL(usleep)(shorter(wait)); }

unsigned sleep(unsigned seconds) {
    struct timespec wait = {seconds, 0}, left = {0, 0};
    return nanosleep(&wait, &left) ? left.tv_sec + (left.tv_nsec > 0) : 0;
}

int poll(struct pollfd *all, nfds_t count, int wait_ms) { return REAL(poll)(all, count, shorter(wait_ms)); }

int ppoll(struct pollfd *all, nfds_t count, const struct timespec *wait, const sigset_t *mask) {
    struct timespec real = wait ? as_time(shorter(ns_of(*wait))) : (struct timespec){0, 0};
    return REAL(ppoll)(all, count, wait ? &real : wait, mask);
}

int select(int count, fd_set *in, fd_set *out, fd_set *odd, struct timeval *wait) {
    struct timespec real = {0, 0};
    if (wait) real = as_time(shorter(wait->tv_sec * SECOND + wait->tv_usec * 1000LL));
    return REAL(pselect)(count, in, out, odd, wait ? &real : NULL, NULL);
}

int pselect(int count, fd_set *in, fd_set *out, fd_set *odd, const struct timespec *wait, const sigset_t *mask) {
    struct timespec real = wait ? as_time(shorter(ns_of(*wait))) : (struct timespec){0, 0};
    return REAL(pselect)(count, in, out, odd, wait ? &real : wait, mask);
}

int epoll_wait(int file, struct epoll_event *events, int most, int wait_ms) {
    return REAL(epoll_wait)(file, events, most, shorter(wait_ms));
}

int epoll_pwait(int file, struct epoll_event *events, int most, int wait_ms, const sigset_t *mask) {
    return REAL(epoll_pwait)(file, events, most, shorter(wait_ms), mask);
}

int sem_timedwait(sem_t *restrict one, const struct timespec *restrict until) {
    struct timespec real = deadline(CLOCK_REALTIME, until);
    return REAL(sem_timedwait)(one, &real);
}

int sem_clockwait(sem_t *restrict one, clockid_t clock, const struct timespec *restrict until) {
    struct timespec real = deadline(clock, until);
    return REAL(sem_clockwait)(one, clock, &real);
}

int pthread_cond_timedwait(pthread_cond_t *restrict one, pthread_mutex_t *restrict lock,
                           const struct timespec *restrict until) {
    /* The condition's own clock cannot be asked for. Seconds since the machine's start are fewer than since 1970. */
    clockid_t clock = until->tv_sec > clocks->wall_ns / SECOND / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    struct timespec real = deadline(clock, until);
    return REAL(pthread_cond_timedwait)(one, lock, &real);
}

int pthread_cond_clockwait(pthread_cond_t *restrict one, pthread_mutex_t *restrict lock, clockid_t clock,
                           const struct timespec *restrict until) {
    struct timespec real = deadline(clock, until);
    return REAL(pthread_cond_clockwait)(one, lock, clock, &real);
}

int setitimer(__itimer_which_t which, const struct itimerval *restrict timer, struct itimerval *restrict before) {
    struct itimerval real = *timer;
    struct timeval *both[] = {&real.it_value, &real.it_interval};
    if (which == ITIMER_REAL)
        for (int one = 0; one < 2; one++) {
            int64_t us = shorter(both[one]->tv_sec * 1000000LL + both[one]->tv_usec);
            *both[one] = (struct timeval){us / 1000000, us % 1000000};
        }
    return REAL(setitimer)(which, &real, before);
}
