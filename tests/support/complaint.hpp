#pragma once
// What the support library does about a fault that it finds when nobody waits for a result: a
// program that ended badly, a line of its log that is no JSON. In a test it is a failed check
// (doctest_main.cpp); elsewhere it ends the run, unless the program has set something else.

#include <cstdio>
#include <cstdlib>
#include <string>

namespace reprise::tests {

/// Called on any thread. To be set before the first program is started.
inline void (*complain)(const std::string& what) = [](const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
};

}  // namespace reprise::tests
