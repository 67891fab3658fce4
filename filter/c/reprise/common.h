/*
 * What reprise/admission.h and reprise/digest.h have in common: keys, errors, and where bytes go.
 *
 * Structures that may grow begin with `size`, which the caller sets to the size that it was compiled with (each has an
 * initialiser that does). A library that is newer fills in its defaults for what the caller does not know, or leaves it
 * out; one that is older takes a larger structure as long as all that it does not know is zero. A size that is smaller
 * than the first release's, or above 64 KiB, is REPRISE_BAD_SIZE.
 */
#ifndef REPRISE_COMMON_H
#define REPRISE_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. Numbers are never used again for something else. */
enum reprise_code {
    REPRISE_OK = 0,
    REPRISE_BAD_ARGUMENT = 1, /* a null pointer, or a number, that the function's comment rules out */
    REPRISE_BAD_SIZE = 2,     /* a structure's size: see above */
    REPRISE_BAD_OPTION = 3,   /* an option out of its range, or a word that is none */
    REPRISE_NO_MEMORY = 4,
    REPRISE_FILE = 5,      /* the system would not read or write: `system` is its errno */
    REPRISE_REFUSED = 6,   /* bytes that can't be used here: damaged, of another version, of other options */
    REPRISE_STOPPED = 7,   /* the caller's function returned something else than 0 */
    REPRISE_INTERNAL = 8,  /* none of these: a defect of this library */
    REPRISE_ASK_WHOLE = 9, /* a delta to another digest than the one held: ask for the whole one */
    REPRISE_UNCHANGED = 10 /* the asker has the newest digest already */
};

/* What went wrong, in a sentence: what, where, and what would be right. Functions that take one take a null pointer
 * too. It is written when something went wrong, and where a function's comment says so, and set to REPRISE_OK otherwise. */
typedef struct reprise_error {
    size_t size;
    int32_t code;   /* reprise_code */
    int32_t system; /* errno, or 0 */
    char text[240]; /* of UTF-8, ended by a zero; cut where the caller's structure is shorter */
} reprise_error;
#define REPRISE_ERROR_INIT { sizeof(reprise_error), 0, 0, { 0 } }

/* 128 bits of a key's text under a handle's seed. Two handles of one seed have the same keys. */
typedef struct reprise_key {
    uint64_t low;
    uint64_t high;
} reprise_key;

/* Takes the next `bytes` of `piece`; anything but 0 stops. It must not throw. */
typedef int (*reprise_sink)(void *context, const void *piece, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
