// What releases left behind is read: a store and an admission state of each version that was ever
// released (tests/data/formats, proxy/VERSIONS.md). Of a version that is newer nothing is destroyed.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/waiting.hpp"

#include <filesystem>
#include <string>

TEST_SUITE("scenario/kept_formats") {

    using namespace reprise::tests;

    namespace {

    namespace fs = std::filesystem;

    /// A copy of what a release left, and settings that use it.
    struct left_behind {
        temp_dir directory;
        json settings = basic_settings();

        explicit left_behind(const std::string& archive) {
            const auto ran = run_to_its_end({"tar",
                                             "-xzf",
                                             REPRISE_TEST_DATA "/formats/" + archive,
                                             "-C",
                                             directory.path().string()});
            REQUIRE_MESSAGE(ran.exit_status == 0, ran.errors);
            settings["disk"] = disk_of_all_admitted(directory.file("store"), "16MiB");
            settings["admission"] = {{"state", directory.file("admission")},
                                     {"probation", "0%"},
                                     {"remember", {{"objects", 1024}}}};
        }
    };

    std::string url(const std::string& path) {
        return "http://kept.example:18833/" + path;
    }

    response kept(const proxy_process& proxy,
                  const std::string& path,
                  std::string_view fields = "") {
        return proxy.get(url(path), "Cache-Control: only-if-cached\r\n" + std::string{fields});
    }

    }  // namespace

    TEST_CASE("version 1 of the store and of the admission state is read") {
        left_behind by_0_1_0{"store-1-admission-1.tar.gz"};
        proxy_process proxy{by_0_1_0.settings};
        REQUIRE(eventually([&] { return proxy.stats().at("disk").at("state") == "ready"; }));
        CHECK(kept(proxy, "small").body == "kept small");
        const auto large = kept(proxy, "large");
        CHECK(large.status == 200);
        CHECK(large.body.size() == 66'000);
        CHECK(large.body.substr(65'989) == "kept large ");
        CHECK(kept(proxy, "variant", "Accept-Language: da\r\n").body == "in da");
        CHECK(kept(proxy, "variant", "Accept-Language: sv\r\n").body == "in sv");
        CHECK(kept(proxy, "refreshed").body == "kept once");
        for (const std::string path : {"purged", "banned", "soft"}) {
            CAPTURE(path);
            CHECK(kept(proxy, path).status == 504);
        }
        CHECK(figure(proxy.stats(), "/disk/damaged") == 0);
        CHECK(proxy.says("/admission loaded"));
        const auto explained = [&](const std::string& path) {
            return json::parse(proxy.admin("/explain?url=" + url(path)).body)
                .at("admission")
                .at("seen_before")
                .get<int>();
        };
        CHECK(explained("asked-once") == 1);
        CHECK(explained("never") == 0);
    }

    // One that says its version under a checksum that this release can check ends the start
    // (cache/disk/tier); here the checksum is a later release's too.
    TEST_CASE("a store of a later release is left as it is, and traffic goes on without it") {
        left_behind by_a_later{"store-1-admission-1.tar.gz"};
        for (const std::string name : {"store", "store.copy"}) {
            const auto path = "store/" + name;
            auto bytes = read_file(by_a_later.directory.file(path));
            bytes[16] = 2;
            (void)by_a_later.directory.write(path, bytes);
        }
        const auto before = read_file(by_a_later.directory.file("store/s-00000000"));
        {
            proxy_process proxy{by_a_later.settings};
            CHECK(proxy.stats().at("disk").at("state") == "off");
        }
        CHECK(read_file(by_a_later.directory.file("store/s-00000000")) == before);
        CHECK(read_file(by_a_later.directory.file("store/store"))[16] == 2);
    }

    TEST_CASE("an admission state of a version that is not known is put aside, for who wrote it") {
        left_behind by_a_later{"store-1-admission-1.tar.gz"};
        auto bytes = read_file(by_a_later.directory.file("admission"));
        bytes[8] = 2;
        (void)by_a_later.directory.write("admission", bytes);
        {
            proxy_process proxy{by_a_later.settings};
            CHECK(proxy.says("another version"));
            CHECK(proxy.says("admission.other-version"));
        }
        CHECK(read_file(by_a_later.directory.file("admission.other-version")) == bytes);
        CHECK(fs::exists(by_a_later.directory.file("admission")));  // our own
    }
}
