#include "config/disk_settings.hpp"

#include "config/checks.hpp"
#include "config/units.hpp"

namespace reprise::config {
namespace {
using enum change;
}  // namespace

object_table<disk_options> disk_table() {
    return {
        {
            value("path",
                  &disk_options::path,
                  path_or_off(),
                  restart,
                  "The directory of the store, made if it is not there; \"off\": there is none. "
                  "One process at a time may use it."),
            value("size",
                  &disk_options::size,
                  size_between(16 * mib, 16 * tib),
                  restart,
                  "What all files in it take at most, bookkeeping included. More holds more "
                  "hits; memory for the index grows by up to 24 bytes an object. Where it was more "
                  "before, the oldest goes soon after the start. So little that "
                  "two of its segments (a 128th of the size that it was made with) do not fit "
                  "begins the store anew, empty."),
            by_default(
                "a quarter of size",
                value("max_object",
                      &disk_options::max_object,
                      size_between(1 * kib, 16 * tib),
                      restart,
                      "A larger body is not stored on disk. Less keeps one large object from "
                      "pushing many small ones out.")),
            by_default(
                "eviction",
                value("write",
                      &disk_options::write,
                      one_of<disk_write>({{"admission", disk_write::admission},
                                          {"eviction", disk_write::eviction}}),
                      restart,
                      "When a response goes to disk, once: when it is admitted, or when it leaves "
                      "memory (of what never was asked for again there, only while the disk is not "
                      "full: `selective`). \"eviction\" writes less; what memory holds is "
                      "written at an orderly end, as far as 5 seconds suffice, and lost in a "
                      "crash.")),
            by_default(
                "0.6",
                value("carry",
                      &disk_options::carry,
                      fraction_between(0, 0.9),
                      restart,
                      "Of the bytes written at most this share are objects that were used and "
                      "would leave: they are written again instead. More keeps more hits and "
                      "writes more. 0: the oldest leaves, whatever it is worth, and `selective` "
                      "has nothing to compare by: all that is admitted is written.")),
            by_default(
                "true",
                value("selective",
                      &disk_options::selective,
                      yes_or_no(),
                      restart,
                      "Once the disk is full, what is asked for less often than what would leave "
                      "for it is not written. Fewer writes and more hits; what was admitted a "
                      "moment ago may be in memory alone. While it fills, and write is "
                      "\"eviction\", all that leaves memory is written, probation's too.")),
        },
        {},
        check_disk};
}

}  // namespace reprise::config
