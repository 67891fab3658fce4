/*
 * libreprise-digest: what does this cache hold, and which of my siblings may hold that?
 *
 * A cache tells its siblings what it holds by a Bloom filter, some 9 bits a key on the wire at 1 % of mistakes, and by what
 * changed since; each of them asks up to 64 such digests by one look-up before it asks an origin. Caches of Reprise speak
 * the same bytes (filter/DIGEST_FORMAT.md). How they travel, and who may have them, is the server's business.
 *
 *     source: what is held                                   siblings: what others hold
 *     reprise_source_came(source, key, bytes)    on storing  reprise_siblings_take(siblings, 3, body, length)
 *     reprise_source_left(source, key)           on erasing  mask = reprise_siblings_ask(reader, key)
 *     reprise_source_publish(source)             each second
 *     reprise_source_serve(source, epoch, counter, ...)
 *
 * Threads   any number may call whatever takes a handle but close, at once. ask takes no lock, allocates nothing and never
 *           waits; each thread that asks has a reader of its own. came, left and reprise_source_read take a lock in which
 *           nothing is allocated; the longest that it is held is for publish to copy the bits, and for a ring to sweep what is left of
 *           its oldest generation: a millisecond for a million keys. publish, serve, save and take (but of news) work through all bits
 *           (some ten milliseconds for a million keys), each but save one at a time: not for an event loop.
 * Fork      a child closes none of its parent's handles, and uses none: another thread may have held their locks. It attaches
 *           to the memory for one of its own.
 * Processes share a source in memory that they all map (memory_take of the options): one opens it, the others attach, and each tells
 *           it what came and left, publishes, and serves the same digests. One lock for all guards it. Where a process is killed that
 *           holds it, the next one that comes counts anew what goes with the places (milliseconds for a million keys), publishes, and
 *           goes on: what is missing is at most the key that was in hand. A counting source is better cleared then and told of all
 *           anew: a key that was half taken out costs others their places if it is taken out once more. One that is stopped and
 *           holds the lock is waited for. All are of one namespace of process ids, and of one run of the system: what outlived that
 *           is opened, not attached.
 * Errs      towards "holds it": `rate` of the keys that are not held; and what left since the last news. A key that is held
 *           is in each digest that was published after it came.
 * Errors    as in reprise/common.h. Nothing aborts, nothing throws through this face. Digests come from strangers: any bytes
 *           are judged, and cost at most the memory that the options allow.
 */
#ifndef REPRISE_DIGEST_H
#define REPRISE_DIGEST_H

#include <reprise/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What this cache holds ---- */

typedef struct reprise_source reprise_source;

enum reprise_source_kind {
    /* The store tells of what leaves: reprise_source_left. Each key that came leaves as often as it came. */
    REPRISE_COUNTING = 1,
    /* The store is a ring and tells of nothing: it forgets what was written longest ago, and keeps `room` bytes. Nothing
     * that is held is missing; 1 / (2 generations - 1) of what is named is gone, 3.7 % of 14 generations. */
    REPRISE_STAMPED = 2
};

typedef struct reprise_source_options {
    size_t size;
    uint32_t kind;        /* reprise_source_kind: REPRISE_COUNTING */
    uint32_t generations; /* of a stamped source, 2 to 14: 14 */
    uint64_t keys;        /* that the store keeps, about: 1 to 10^9. More raise the rate. 1,000,000 */
    double rate;          /* of mistakes, 10^-6 to 0.2: 0.01 */
    uint64_t room;        /* of a stamped source: bytes that the store keeps; must be set */
    uint32_t history;     /* published digests to make deltas from, 0 to 16, each a bit a place: 3 */
    uint32_t reserved;    /* 0 */
    /* 32 random bytes that keys are hashed under, the same in the whole fleet, which alone can read its digests. Must
     * be set. */
    const unsigned char *seed;
    /* Of a stamped source: a file that open reads, and save writes; mode 0600. Nothing else remembers what a ring holds. A
     * counting source takes none: its store tells of all that it holds when it starts. None (null): nothing is kept. */
    const char *state;
    /* Where the memory of places and bits comes from, in one piece that open takes and reprise_source_memory has the size of:
     * `memory_take` returns `bytes` on a boundary of `alignment` (a power of two), or null; they need not be zero.
     * `memory_give` is called by close, and by an open that fails after all. Both or none; none: the system's heap. Neither must
     * throw. Digests, and what else is small, come from the heap. It holds the seed: let nobody else map it.
     * Since 0.3 of the symbols; a shorter structure has none. */
    void *(*memory_take)(void *context, size_t bytes, size_t alignment);
    void (*memory_give)(void *context, void *memory, size_t bytes);
    void *memory_context;
    /* Places whose bits turned, which reprise_source_news can tell, 0 to 2^26: 8 bytes each, and 10 KiB. 0: it tells none. A key
     * that comes or leaves turns a place for each probe, two at a rate of 0.01. Since 0.4 of the symbols; a shorter structure has none. */
    uint64_t news;
} reprise_source_options;
#define REPRISE_SOURCE_OPTIONS_INIT \
    { sizeof(reprise_source_options), REPRISE_COUNTING, 14, 1000000, 0.01, 0, 3, 0, NULL, NULL, NULL, NULL, NULL, 0 }

typedef struct reprise_source_figures {
    size_t size; /* in: what there is room for; what lies beyond the library's own is zeroed */
    uint64_t places;
    uint64_t places_on;
    uint64_t places_changed; /* that differ from those last published; none: news may have told of what is to be published all the same */
    uint64_t memory;         /* bytes, of places, bits, and what news take; digests beside that */
    double rate;             /* of mistakes, now */
    uint64_t epoch;          /* of the newest digest; the first is that of the empty source, counter 1 */
    uint64_t counter;
    uint64_t room;       /* of a stamped source; else 0 */
    uint64_t written;    /* bytes in the current generation */
    uint64_t generation; /* how many began */
} reprise_source_figures;
#define REPRISE_SOURCE_FIGURES_INIT { sizeof(reprise_source_figures), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* How many bytes `memory_take` will be asked for; 0 where open would refuse the options. */
uint64_t reprise_source_memory(const reprise_source_options *options);

/* A source, of an epoch of its own: no reader takes its deltas for those of another. It is empty, or what its state says; where
 * a state is there and can't be used, the function returns REPRISE_OK all the same, the source is empty, and `error` says why
 * (REPRISE_REFUSED, REPRISE_FILE): log it. What another version of the format wrote is kept as STATE.other-version.
 * REPRISE_BAD_ARGUMENT (also for memory that is not on its boundary), _BAD_SIZE, _BAD_OPTION, _NO_MEMORY, _FILE (the system has
 * no random bytes): *source is null then. */
int reprise_source_open(const reprise_source_options *options, reprise_source **source, reprise_error *error);
/* The source that another process has opened in this memory, at whatever address it is mapped here: `memory` is where
 * memory_take's was, `bytes` what there is. Memory that outlived a reload is to be attached first, and opened where that is
 * refused: open begins anew in it, and nobody else may be at it. Closing what was attached gives nothing back; digests that it
 * served are its own, on the heap. REPRISE_REFUSED where no open source lies there, or one of another release, and which;
 * REPRISE_BAD_ARGUMENT, _NO_MEMORY: *source is null then. save needs a path. Since 0.4. */
int reprise_source_attach(void *memory, size_t bytes, reprise_source **source, reprise_error *error);
void reprise_source_close(reprise_source *source);

/* The key of a text, as every holder of the seed has it. Reprise's own caches take the URL's (proxy/peer/README.md). */
reprise_key reprise_source_key(const reprise_source *source, const void *text, size_t length);

/* The store has written an object of so many bytes. Those of a counting source are not looked at; a stamped one begins a
 * generation whenever room / (generations - 1) of them, rounded up, were written. */
void reprise_source_came(reprise_source *source, reprise_key key, uint64_t bytes);
/* The store has it no more. REPRISE_REFUSED, and nothing is changed, where it surely never came; or the source is stamped. */
int reprise_source_left(reprise_source *source, reprise_key key);

/* What a stamped source's store keeps, once that is known better (bytes written between two rounds of the ring). From
 * the current generation on, which is over with the next object where it has more than one of the new room; it is saved, and goes
 * before the option from then on. REPRISE_BAD_ARGUMENT where it is 0, or the source counts. */
int reprise_source_set_room(reprise_source *source, uint64_t room);
/* All is gone: the store was emptied. */
void reprise_source_clear(reprise_source *source);

/* Makes what is held now the newest digest, where anything changed since the last, or since what news told, or takes that of another
 * process; REPRISE_UNCHANGED else. REPRISE_NO_MEMORY. */
int reprise_source_publish(reprise_source *source, reprise_error *error);

/* Gives a reader who has the digest of this epoch and counter (0, 0: none) what makes it the newest: a delta, or the whole
 * where that is shorter or its own is not remembered. REPRISE_UNCHANGED, and nothing is given, where it has that. In one
 * piece; the sink may be called while nothing is locked. */
int reprise_source_serve(reprise_source *source,
                         uint64_t epoch,
                         uint64_t counter,
                         reprise_sink sink,
                         void *context,
                         reprise_error *error);

/* Gives a reader who has the digest of this epoch and counter what changed since until now, as news (filter/DIGEST_FORMAT.md): that
 * costs the places that turned, and not all bits, neither here nor there; so it may be asked far more often than publish is
 * called, and needs none. What changed since the newest digest becomes one of its own by that, whose counter the reader has then; only
 * news lead on from it, or a whole. REPRISE_UNCHANGED, and nothing is given, where nothing changed since.
 * REPRISE_ASK_WHOLE where what changed is not remembered: another epoch, more places than the options' `news`, or than a
 * sixteenth of all; more than 256 digests or pieces of news ago; or a whole would be shorter: publish and serve then.
 * REPRISE_BAD_ARGUMENT (also for a source that was opened for no news), _STOPPED, _NO_MEMORY. Since 0.4. */
int reprise_source_news(reprise_source *source,
                        uint64_t epoch,
                        uint64_t counter,
                        reprise_sink sink,
                        void *context,
                        reprise_error *error);

/* Writes the state to `path`, or where that is null to the option's, as reprise_admission_save does; the lock is held while the
 * places are copied. Save when the server ends, and now and then: what was written since is not named after a restart.
 * REPRISE_BAD_ARGUMENT where there is no path, or the source counts; REPRISE_FILE, _NO_MEMORY. */
int reprise_source_save(reprise_source *source, const char *path, reprise_error *error);

int reprise_source_read(reprise_source *source, reprise_source_figures *figures);

/* ---- What its siblings hold ---- */

typedef struct reprise_siblings reprise_siblings;
typedef struct reprise_siblings_reader reprise_siblings_reader;

enum { REPRISE_MOST_SIBLINGS = 64 };

typedef struct reprise_siblings_options {
    size_t size;
    const unsigned char *seed; /* the fleet's 32 bytes; must be set */
    uint64_t most_bytes;       /* for all digests, and what news take beside: 1 GiB. 64 of equal size take what they have; one alone 8 times */
    double most_rate;          /* of mistakes: a digest above that says too little to be asked. 0.2 */
} reprise_siblings_options;
#define REPRISE_SIBLINGS_OPTIONS_INIT { sizeof(reprise_siblings_options), NULL, (uint64_t)1 << 30, 0.2 }

typedef struct reprise_sibling {
    size_t size; /* in: what there is room for; what lies beyond the library's own is zeroed */
    uint64_t epoch;
    uint64_t counter; /* 0, and all else too, where the sibling has no digest here */
    uint64_t keys;    /* that it counts */
    uint64_t places;
    double rate; /* of mistakes, as last taken */
} reprise_sibling;
#define REPRISE_SIBLING_INIT { sizeof(reprise_sibling), 0, 0, 0, 0, 0 }

int reprise_siblings_open(const reprise_siblings_options *options, reprise_siblings **siblings, reprise_error *error);
/* Readers may be closed before or after. */
void reprise_siblings_close(reprise_siblings *siblings);

reprise_key reprise_siblings_key(const reprise_siblings *siblings, const void *text, size_t length);

/* What a sibling has sent, whole, a delta or news, becomes its digest here. `number` is 0 to 63, and names it from then on.
 * REPRISE_REFUSED where the bytes can't be used, and why: then its digest is what it was. REPRISE_ASK_WHOLE for a delta or
 * news to another digest than that, and for news that are damaged, or lead to something else than they say: its digest is what it was;
 * ask it with epoch 0, counter 0. REPRISE_BAD_ARGUMENT, _NO_MEMORY.
 * A blocked digest is refused as such: Reprise makes those of what was seen (/seen), not of what is held, and has a key's eight places in
 * one line of its own, so that one look-up can't ask it along with 64 others. Nor do sources make any.
 * News are what Reprise's own caches send, some 0.2 seconds after something changed, to whoever asks with ?since=EPOCH-COUNTER&wait=SECONDS
 * (proxy/peer/README.md), and what reprise_source_news makes. They cost what they say and not all bits, for which a bit a place is kept beside
 * the digest from its first news on, until the next whole or delta, within most_bytes: refused where that leaves no room. */
int reprise_siblings_take(reprise_siblings *siblings,
                          unsigned number,
                          const void *bytes,
                          size_t length,
                          reprise_error *error);
/* It is gone, or has not been heard of for too long: nobody is told of it any more. */
void reprise_siblings_forget(reprise_siblings *siblings, unsigned number);
/* Which digest of it is held: what to ask it with. */
int reprise_siblings_read(const reprise_siblings *siblings, unsigned number, reprise_sibling *sibling);

/* One thread's access. */
int reprise_siblings_reader_open(reprise_siblings *siblings, reprise_siblings_reader **reader, reprise_error *error);
void reprise_siblings_reader_close(reprise_siblings_reader *reader);
/* Which siblings may hold the key: bit n for number n. */
uint64_t reprise_siblings_ask(reprise_siblings_reader *reader, reprise_key key);
/* For a thread that may not ask for long: lets go of memory that it would keep. */
void reprise_siblings_rest(reprise_siblings_reader *reader);

/* ---- What a fleet shares ---- */

typedef struct reprise_fleet reprise_fleet;

/* The keys made of the fleet's secret, a file of 32 to 4,096 random bytes (a line end at its end does not count), the same as
 * digest.secret_file of Reprise's own caches. `now`: what was signed before is refused, and where the clock is set
 * back by up to two minutes what was taken before is, too. A null path: the keys that
 * everybody knows, for fleets without a secret, and nothing is signed. REPRISE_FILE where the file can't be read, REPRISE_REFUSED where
 * it is too short or too long, REPRISE_NO_MEMORY: *fleet is null then. Blocks for the disk. */
int reprise_fleet_open(const char *secret_file, int64_t now, reprise_fleet **fleet, reprise_error *error);
void reprise_fleet_close(reprise_fleet *fleet);

/* The 32 bytes that digests are hashed under: `seed` of sources and siblings. Valid until close. */
const unsigned char *reprise_fleet_seed(const reprise_fleet *fleet);
/* 1 where there is a secret: requests for digests are signed then. */
int reprise_fleet_signs(const reprise_fleet *fleet);
/* The key that Reprise's own caches have for a URL, for reprise_source_came and reprise_siblings_ask: "http://host/path?query", host in lower
 * case, without the scheme's own port. No lock, no allocation. */
reprise_key reprise_fleet_key(const reprise_fleet *fleet, const void *url, size_t length);

/* A field line of a request, both ended by zeroes. */
typedef struct reprise_field {
    const char *name;
    const char *value;
} reprise_field;

/* A request for a digest, as it stands on the wire. */
typedef struct reprise_request {
    size_t size;
    const char *method;          /* "GET" */
    const char *target;          /* in origin-form, with its query */
    const char *authority;       /* Host's value; over plain HTTP without :80 */
    const reprise_field *fields; /* of check: those of the request; others than a signature's may be left out */
    size_t field_count;
} reprise_request;
#define REPRISE_REQUEST_INIT { sizeof(reprise_request), NULL, NULL, NULL, NULL, 0 }

/* The field lines that sign a request (RFC 9421, hmac-sha256), each ended by CRLF, in one piece: Reprise-Node, Reprise-To, Signature-Input
 * and Signature. `from` is the asker's name, `to` the far end of its connection, "192.0.2.7:8080", or "[2001:db8::7]:8080".
 * REPRISE_BAD_ARGUMENT, also where there is no secret; REPRISE_STOPPED, _FILE (no random bytes), _NO_MEMORY. */
int reprise_fleet_sign(const reprise_fleet *fleet,
                       const reprise_request *request,
                       const char *from,
                       const char *to,
                       int64_t now,
                       reprise_sink sink,
                       void *context,
                       reprise_error *error);

/* Whether a request was signed by whoever has the secret, for this receiver, in the last minute, and not seen before. `here` is this end of the
 * connection, as `to` above; `name` what this node goes by in Host where addresses are translated, or null. Well signed, its nonce is
 * remembered. REPRISE_REFUSED, and `error` says "the signature is missing", or malformed, other_secret, wrong,
 * elsewhere, out_of_time, replayed, too_many. REPRISE_BAD_ARGUMENT, _BAD_SIZE, _NO_MEMORY. */
int reprise_fleet_check(reprise_fleet *fleet,
                        const reprise_request *request,
                        const char *here,
                        const char *name,
                        int64_t now,
                        reprise_error *error);

/* "0.1.0": of the library that is loaded. */
const char *reprise_digest_version(void);

#ifdef __cplusplus
}
#endif

#endif
