/*
 * libreprise-admission: was this asked for before?
 *
 * A cache that stores an object at its first request writes mostly what nobody asks for again. This library remembers in
 * a few bytes a URL (4.5 for a million at one mistake in a thousand) what was asked for lately, in Bloom filters of
 * two generations, keeps that over restarts, and tells how often a key was seen, so that a server stores an object at
 * its second request, or its third.
 *
 *     reprise_admission_options options = REPRISE_ADMISSION_OPTIONS_INIT;
 *     reprise_admission *gate = NULL;
 *     options.state = "/var/lib/server/seen";
 *     if (reprise_admission_open(&options, time(NULL), &gate, &error) != REPRISE_OK) ...
 *     key = reprise_admission_key(gate, url, strlen(url));
 *     if (!reprise_admission_wanted(gate, reprise_admission_peek(gate, key))) ...    at a miss: do not store
 *     reprise_admission_note(gate, key, now);                                        once it turns out storable
 *     reprise_admission_refresh(gate, key, now);                                     at a hit
 *
 * Threads   any number may call whatever takes a handle but close, at once. key, peek, note, refresh, wanted and
 *           generation take no lock, allocate nothing and make no system call; nothing waits. read is as cheap, some
 *           0.1 ms. open, save and write block: not for an event loop.
 * Time      `now` and all times are seconds since 1970, from the caller's wall clock; one below 0 or above 2^40 counts as
 *           the nearer of the two. `age` is in seconds too.
 * Cost      of a key of 80 bytes: key 12 ns; of 100,000 keys: peek 9 ns, refresh 4 ns where nothing is to be done, note
 *           of a new key 53 ns (filter/README.md).
 * Errs      towards "seen": at most `rate` of the keys never seen. A key it still remembers is never answered with fewer
 *           sights than it had, but where two threads note it at once.
 * Memory    one piece, taken at open; reprise_admission_memory says how large. What can't be had then can't fail later.
 * Errors    a code of reprise/common.h, and a sentence in `error`. Nothing aborts, nothing throws through this face. A null
 *           handle is the caller's mistake, and what follows from it its own.
 * Fork      a handle may be used on by a child, and shares what its memory is shared by.
 */
#ifndef REPRISE_ADMISSION_H
#define REPRISE_ADMISSION_H

#include <reprise/common.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reprise_admission reprise_admission;

typedef struct reprise_admission_options {
    size_t size;
    /* Distinct keys to remember at least, of those that came last: 1 to 10^10. 1,000,000 */
    uint64_t objects;
    /* Seconds to remember a key at least, unless `objects` others came since: 1 to 10^9. 180,000, which are 50 hours */
    int64_t age;
    /* How many of the keys never seen are taken for seen, when both generations are full: 10^-9 to 0.5. 0.001 */
    double rate;
    /* At which request an object is wanted: 2 to 16. Each above 2 takes as much memory again. 2 */
    uint32_t hits;
    uint32_t reserved; /* 0 */
    /* A file that open reads, and save writes; mode 0600, for it has the seed. None (null): nothing is kept. */
    const char *state;
    /* 32 random bytes that keys are hashed under, where several are to have the same keys. A state of another seed is
     * refused then. None (null): the state's, or new ones of the system's. */
    const unsigned char *seed;
    /* Where the memory comes from: `memory_take` returns `bytes` on a boundary of `alignment` (a power of two), or null;
     * they need not be zero. `memory_give` is called by close. Both or none; none: the system's heap. Neither must throw.
     * Memory that processes share makes them share what they remember (reprise_admission_attach). */
    void *(*memory_take)(void *context, size_t bytes, size_t alignment);
    void (*memory_give)(void *context, void *memory, size_t bytes);
    void *memory_context;
} reprise_admission_options;
#define REPRISE_ADMISSION_OPTIONS_INIT \
    { sizeof(reprise_admission_options), 1000000, 180000, 0.001, 2, 0, NULL, NULL, NULL, NULL, NULL }

typedef struct reprise_admission_figures {
    size_t size; /* in: what there is room for; what lies beyond the library's own is zeroed */
    /* As opened. */
    uint64_t objects;
    int64_t age;
    double rate;
    uint32_t hits;
    uint32_t generation; /* how often the young generation became old */
    /* Since the memory was made; a state brings none of them along. */
    uint64_t first_sights; /* notes of keys that were not known */
    uint64_t repeats;      /* notes of keys that were */
    uint64_t refreshes;    /* refreshes that wrote something */
    /* Of the two generations: distinct keys that came, when it was begun, share of bits that are on. */
    uint64_t young_keys;
    uint64_t old_keys;
    int64_t young_since;
    int64_t old_since;
    double young_fill;
    double old_fill;
    double strangers_known; /* share of the keys never seen that are taken for seen, now */
    int64_t remembers_for;  /* seconds that a key is remembered at least, at the rate at which keys come; at most `age` */
    uint64_t memory;        /* bytes */
} reprise_admission_figures;
#define REPRISE_ADMISSION_FIGURES_INIT \
    { sizeof(reprise_admission_figures), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Sets what `text` says, words "objects=10M age=50h rate=0.001 hits=2" between blanks or commas: numbers may end in k, M
 * or G (10^3, 10^6, 10^9), ages in s, m, h or d. So that every server's configuration says the same words. The first
 * word that is wrong is named, and nothing is changed then. Any thread. */
int reprise_admission_parse(reprise_admission_options *options, const char *text, reprise_error *error);

/* How many bytes `memory_take` will be asked for; 0 where open would refuse the options. */
uint64_t reprise_admission_memory(const reprise_admission_options *options);

/* Opens a filter. A `state` that is there is read; where it can't be used, all the same a filter is opened, which remembers
 * nothing, the function returns REPRISE_OK, and `error` says why (REPRISE_REFUSED, REPRISE_FILE): log it. A state that
 * another version of the format wrote is kept as STATE.other-version; any other that was refused is written over by the
 * next save. A state that is not there is no error.
 * Returns REPRISE_BAD_ARGUMENT, _BAD_SIZE, _BAD_OPTION, _NO_MEMORY, _FILE (the system has no random bytes); *gate is
 * null then. */
int reprise_admission_open(const reprise_admission_options *options,
                           int64_t now,
                           reprise_admission **gate,
                           reprise_error *error);

/* The filter that another process has opened in this memory, at whatever address it is mapped here: `memory` is where
 * memory_take's was, `bytes` what there is. Memory that outlived a reload is to be attached first, and opened where that is
 * refused: open begins anew in it. Closing what was attached gives nothing back. REPRISE_REFUSED where no open filter lies there,
 * or one of another release; save needs a path then. */
int reprise_admission_attach(void *memory, size_t bytes, reprise_admission **gate, reprise_error *error);

/* Ends a handle: nobody uses it any more. Saves nothing. A null pointer is none. */
void reprise_admission_close(reprise_admission *gate);

/* The key of a text, any bytes. Which text names an object is the server's business: what its cache goes by.
 * What is remembered of it begins to come from memory meanwhile: work that needs it not is best done between this and peek. */
reprise_key reprise_admission_key(const reprise_admission *gate, const void *text, size_t length);

/* How many sights of the key are remembered, at most hits - 1. Records nothing. */
unsigned reprise_admission_peek(const reprise_admission *gate, reprise_key key);

/* Records a sight of the key, and returns how many there were before it, at most hits - 1: 0 for a first one. */
unsigned reprise_admission_note(reprise_admission *gate, reprise_key key, int64_t now);

/* The key is stored, and was hit: should it leave the store, it is to be wanted at its next request. */
void reprise_admission_refresh(reprise_admission *gate, reprise_key key, int64_t now);

/* Whether a key with so many sights before is to be stored now: 1 from hits - 1 on, else 0. */
int reprise_admission_wanted(const reprise_admission *gate, unsigned sights);

/* A number that changes when a generation begins: a key that was refreshed under it need not be again. */
uint32_t reprise_admission_generation(const reprise_admission *gate);

/* What an operator wants to know. REPRISE_BAD_ARGUMENT, _BAD_SIZE. */
int reprise_admission_read(const reprise_admission *gate, int64_t now, reprise_admission_figures *figures);

/* Writes the state to `path`, or where that is null to the option's: to a file beside it, which takes its place once it is
 * on disk. While others note, what was remembered throughout is in it. Two saves at once are two whole files, of which one
 * stays. REPRISE_FILE, _NO_MEMORY, or _BAD_ARGUMENT where there is no path at all. */
int reprise_admission_save(const reprise_admission *gate, const char *path, reprise_error *error);

/* The state, in pieces of at most 64 KiB, for whoever keeps it elsewhere (filter/ADMISSION_FORMAT.md). It holds the seed. */
int reprise_admission_write(const reprise_admission *gate, reprise_sink sink, void *context, reprise_error *error);

/* "0.1.0": of the library that is loaded. */
const char *reprise_admission_version(void);

#ifdef __cplusplus
}
#endif

#endif
