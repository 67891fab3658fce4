// What is remembered over a restart: the file that it is kept in, and what becomes of one that can't be used.

#include "tests/support/temp_dir.hpp"
#include "tests/unit/filter/c/admissions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <malloc.h>
#include <memory>
#include <reprise/admission.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reprise::filter::c::test {

TEST_SUITE("filter/c/admission_state") {
    TEST_CASE("what was saved is known after a restart, and its seed with it") {
        const tests::temp_dir folder;
        const auto path = (folder.path() / "seen").string();
        auto options = small_options();
        options.state = path.c_str();
        {
            const auto gate = must_open(options);  // no file is no error
            note(gate, "http://a/");
            reprise_error error = REPRISE_ERROR_INIT;
            REQUIRE(reprise_admission_save(gate.get(), nullptr, &error) == REPRISE_OK);
            note(gate, "http://b/");
        }
        struct stat facts {};
        REQUIRE(::stat(path.c_str(), &facts) == 0);
        CHECK((facts.st_mode & 0777) == 0600);
        const auto again = must_open(options);
        CHECK(peek(again, "http://a/") == 1);
        CHECK(peek(again, "http://b/") == 0);
        // Nothing else lies there.
        CHECK(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
    }

    TEST_CASE("a state that can't be used is named, and the filter begins empty") {
        const tests::temp_dir folder;
        const auto path = (folder.path() / "seen").string();
        auto options = small_options();
        options.state = path.c_str();
        const auto gate = must_open(options);
        note(gate, "http://a/");
        REQUIRE(reprise_admission_save(gate.get(), nullptr, nullptr) == REPRISE_OK);
        std::string whole;
        {
            std::ifstream in{path, std::ios::binary};
            whole.assign(std::istreambuf_iterator<char>{in}, {});
        }
        const auto refused = [&](const std::string& bytes, const char* why) {
            CAPTURE(why);
            std::ofstream{path, std::ios::binary} << bytes;
            const auto made = open_with(options);
            CHECK(made.code == REPRISE_OK);
            REQUIRE(made.gate != nullptr);
            CHECK(made.error.code == REPRISE_REFUSED);
            CHECK_MESSAGE(says(made.error, why), made.error.text);
            CHECK_MESSAGE(says(made.error, path.c_str()), made.error.text);
            CHECK(peek(made.gate, "http://a/") == 0);
            CHECK(figures_of(made.gate).young_fill == 0);
        };
        refused("", "cut short");
        refused("GET / HTTP/1.1", "cut short");
        refused(std::string(1'000, 'x'), "not an admission state");
        refused(whole.substr(0, whole.size() - 1), "cut short");
        refused(whole + "x", "bytes follow");
        auto damaged = whole;
        damaged[whole.size() / 2] ^= 1;
        refused(damaged, "damaged");
        options.objects = 20'000;
        refused(whole, "another number of objects");
        options.objects = 10'000;
        std::array<unsigned char, 32> seed{};
        options.seed = seed.data();
        refused(whole, "another seed");
        options.seed = nullptr;
        auto other_version = whole;
        other_version[8] = 9;
        refused(other_version, "it is kept as");
        CHECK(::access((path + ".other-version").c_str(), R_OK) == 0);
        CHECK(::access(path.c_str(), R_OK) != 0);

        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        const auto pipe = open_with(options);
        CHECK(pipe.code == REPRISE_OK);
        CHECK(pipe.error.code == REPRISE_FILE);
        CHECK_MESSAGE(says(pipe.error, "no regular file"), pipe.error.text);
        const auto below = path + "/seen";
        options.state = below.c_str();
        const auto nowhere = open_with(options);
        CHECK(nowhere.code == REPRISE_OK);
        CHECK(nowhere.error.code == REPRISE_FILE);
        CHECK(nowhere.error.system == ENOTDIR);
    }

    TEST_CASE("a save that fails says where, and leaves nothing") {
        const tests::temp_dir folder;
        const auto gate = must_open(small_options());
        reprise_error error = REPRISE_ERROR_INIT;
        CHECK(reprise_admission_save(gate.get(), nullptr, &error) == REPRISE_BAD_ARGUMENT);
        const auto path = (folder.path() / "none" / "seen").string();
        CHECK(reprise_admission_save(gate.get(), path.c_str(), &error) == REPRISE_FILE);
        CHECK(error.system == ENOENT);
        CHECK_MESSAGE(says(error, path.c_str()), error.text);
        const auto is_folder = (folder.path() / "folder").string();
        REQUIRE(::mkdir(is_folder.c_str(), 0700) == 0);
        CHECK(reprise_admission_save(gate.get(), is_folder.c_str(), &error) == REPRISE_FILE);
        CHECK(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
    }

    TEST_CASE("a process that is killed in a save leaves nothing beside the file") {
        const tests::temp_dir folder;
        const int nameless = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
        if (nameless < 0) {
            MESSAGE("not tested: the file system of temporary files has none without a name");
            return;
        }
        ::close(nameless);
        const auto gate = must_open(small_options());
        const auto path = folder.file("seen");
        REQUIRE(reprise_admission_save(gate.get(), path.c_str(), nullptr) == REPRISE_OK);
        const auto saved = tests::read_file(path);
        note(gate, "http://a/");
        const auto child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            // The kernel kills who writes more than this.
            const rlimit few{1'000, 1'000};
            const rlimit none{0, 0};
            ::setrlimit(RLIMIT_CORE, &none);
            ::setrlimit(RLIMIT_FSIZE, &few);
            ::signal(SIGXFSZ, SIG_DFL);
            (void)reprise_admission_save(gate.get(), path.c_str(), nullptr);
            ::_exit(0);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        CHECK(tests::read_file(path) == saved);
        CHECK(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
        CHECK(reprise_admission_save(gate.get(), path.c_str(), nullptr) == REPRISE_OK);
        CHECK(tests::read_file(path) != saved);
        CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
              (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
        CHECK(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
    }

    TEST_CASE("the state goes to a function as it goes to a file, and stops when that says so") {
        const auto gate = must_open(small_options());
        note(gate, "http://a/");
        std::string wire;
        const auto append = [](void* context, const void* piece, std::size_t bytes) {
            static_cast<std::string*>(context)->append(static_cast<const char*>(piece), bytes);
            return bytes <= 64 * 1024 ? 0 : 1;
        };
        REQUIRE(reprise_admission_write(gate.get(), append, &wire, nullptr) == REPRISE_OK);
        CHECK(wire.substr(0, 8) == "REPRSEEN");
        const tests::temp_dir folder;
        const auto path = (folder.path() / "seen").string();
        std::ofstream{path, std::ios::binary} << wire;
        auto options = small_options();
        options.state = path.c_str();
        CHECK(peek(must_open(options), "http://a/") == 1);
        const auto stop = [](void*, const void*, std::size_t) { return 1; };
        CHECK(reprise_admission_write(gate.get(), stop, nullptr, nullptr) == REPRISE_STOPPED);
    }
}

}  // namespace reprise::filter::c::test
