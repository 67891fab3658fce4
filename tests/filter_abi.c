/* Prints what a program that was compiled against the headers in filter/c/reprise relies on: sizes, offsets, numbers. filter_abi.sh compares. */
#include <reprise/admission.h>
#include <reprise/digest.h>

#include <stdio.h>

#define NUMBER(name) printf("%s = %d\n", #name, (int)(name))
#define STRUCT(type) printf("\nstruct %s, %zu bytes\n", #type, sizeof(type))
#define MEMBER(type, name) \
    printf("%6zu %3zu  %s\n", offsetof(type, name), sizeof(((type *)NULL)->name), #name)

static void common(void) {
    NUMBER(REPRISE_OK);
    NUMBER(REPRISE_BAD_ARGUMENT);
    NUMBER(REPRISE_BAD_SIZE);
    NUMBER(REPRISE_BAD_OPTION);
    NUMBER(REPRISE_NO_MEMORY);
    NUMBER(REPRISE_FILE);
    NUMBER(REPRISE_REFUSED);
    NUMBER(REPRISE_STOPPED);
    NUMBER(REPRISE_INTERNAL);
    NUMBER(REPRISE_ASK_WHOLE);
    NUMBER(REPRISE_UNCHANGED);
    STRUCT(reprise_error);
    MEMBER(reprise_error, size);
    MEMBER(reprise_error, code);
    MEMBER(reprise_error, system);
    MEMBER(reprise_error, text);
    STRUCT(reprise_key);
    MEMBER(reprise_key, low);
    MEMBER(reprise_key, high);
}

static void admission(void) {
    STRUCT(reprise_admission_options);
    MEMBER(reprise_admission_options, size);
    MEMBER(reprise_admission_options, objects);
    MEMBER(reprise_admission_options, age);
    MEMBER(reprise_admission_options, rate);
    MEMBER(reprise_admission_options, hits);
    MEMBER(reprise_admission_options, reserved);
    MEMBER(reprise_admission_options, state);
    MEMBER(reprise_admission_options, seed);
    MEMBER(reprise_admission_options, memory_take);
    MEMBER(reprise_admission_options, memory_give);
    MEMBER(reprise_admission_options, memory_context);
    STRUCT(reprise_admission_figures);
    MEMBER(reprise_admission_figures, size);
    MEMBER(reprise_admission_figures, objects);
    MEMBER(reprise_admission_figures, age);
    MEMBER(reprise_admission_figures, rate);
    MEMBER(reprise_admission_figures, hits);
    MEMBER(reprise_admission_figures, generation);
    MEMBER(reprise_admission_figures, first_sights);
    MEMBER(reprise_admission_figures, repeats);
    MEMBER(reprise_admission_figures, refreshes);
    MEMBER(reprise_admission_figures, young_keys);
    MEMBER(reprise_admission_figures, old_keys);
    MEMBER(reprise_admission_figures, young_since);
    MEMBER(reprise_admission_figures, old_since);
    MEMBER(reprise_admission_figures, young_fill);
    MEMBER(reprise_admission_figures, old_fill);
    MEMBER(reprise_admission_figures, strangers_known);
    MEMBER(reprise_admission_figures, remembers_for);
    MEMBER(reprise_admission_figures, memory);
}

static void digest(void) {
    NUMBER(REPRISE_COUNTING);
    NUMBER(REPRISE_STAMPED);
    NUMBER(REPRISE_MOST_SIBLINGS);
    STRUCT(reprise_source_options);
    MEMBER(reprise_source_options, size);
    MEMBER(reprise_source_options, kind);
    MEMBER(reprise_source_options, generations);
    MEMBER(reprise_source_options, keys);
    MEMBER(reprise_source_options, rate);
    MEMBER(reprise_source_options, room);
    MEMBER(reprise_source_options, history);
    MEMBER(reprise_source_options, reserved);
    MEMBER(reprise_source_options, seed);
    MEMBER(reprise_source_options, state);
    MEMBER(reprise_source_options, memory_take);
    MEMBER(reprise_source_options, memory_give);
    MEMBER(reprise_source_options, memory_context);
    MEMBER(reprise_source_options, news);
    STRUCT(reprise_source_figures);
    MEMBER(reprise_source_figures, size);
    MEMBER(reprise_source_figures, places);
    MEMBER(reprise_source_figures, places_on);
    MEMBER(reprise_source_figures, places_changed);
    MEMBER(reprise_source_figures, memory);
    MEMBER(reprise_source_figures, rate);
    MEMBER(reprise_source_figures, epoch);
    MEMBER(reprise_source_figures, counter);
    MEMBER(reprise_source_figures, room);
    MEMBER(reprise_source_figures, written);
    MEMBER(reprise_source_figures, generation);
    STRUCT(reprise_siblings_options);
    MEMBER(reprise_siblings_options, size);
    MEMBER(reprise_siblings_options, seed);
    MEMBER(reprise_siblings_options, most_bytes);
    MEMBER(reprise_siblings_options, most_rate);
    STRUCT(reprise_sibling);
    MEMBER(reprise_sibling, size);
    MEMBER(reprise_sibling, epoch);
    MEMBER(reprise_sibling, counter);
    MEMBER(reprise_sibling, keys);
    MEMBER(reprise_sibling, places);
    MEMBER(reprise_sibling, rate);
    STRUCT(reprise_field);
    MEMBER(reprise_field, name);
    MEMBER(reprise_field, value);
    STRUCT(reprise_request);
    MEMBER(reprise_request, size);
    MEMBER(reprise_request, method);
    MEMBER(reprise_request, target);
    MEMBER(reprise_request, authority);
    MEMBER(reprise_request, fields);
    MEMBER(reprise_request, field_count);
}

int main(void) {
    common();
    admission();
    puts("");
    digest();
    return 0;
}
