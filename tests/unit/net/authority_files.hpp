#pragma once
// A CA's two files and the settings that name them, as interception wants them.

#include "config/options.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/temp_dir.hpp"

#include <string>
#include <sys/stat.h>

namespace reprise::proxy::net {

/// An authority of the test's own, above those that sign.
inline const tests::test_authority& root_of_the_test() {
    static const tests::test_authority one;
    return one;
}

struct authority_files {
    tests::temp_dir at;
    config::intercept_options wanted;

    explicit authority_files(const tests::authority_wishes& wishes = {})
        : authority_files{root_of_the_test().issue_authority(wishes)} {}
    explicit authority_files(const tests::made_certificate& made) {
        wanted.hosts = {"a.test", "*.b.test"};
        wanted.ca_certificate = at.write("ca.pem", made.certificate);
        set_key(made.key);
    }

    void set_key(const std::string& key, unsigned mode = 0600) {
        wanted.ca_key = at.write("ca.key", key);
        ::chmod(wanted.ca_key.c_str(), mode);
    }
};

}  // namespace reprise::proxy::net
