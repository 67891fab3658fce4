// --check-config against the start: what ends the one is said by the other, by setting, all of it
// at once; and looking changes nothing.

#include "tests/scenario/world.hpp"
#include "tests/support/certificates.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <sys/stat.h>

TEST_SUITE("scenario/check_config") {

    using namespace reprise::tests;

    namespace {

    struct wrong_setting {
        std::string setting;  ///< as it is to be named
        std::function<void(json&, const temp_dir&)> write;
        bool ends_start = true;
    };

    std::string write_private(const temp_dir& at, std::string_view name, std::string_view text) {
        auto path = at.write(name, text);
        ::chmod(path.c_str(), 0600);
        return path;
    }

    const json one_peer = json::array({{{"name", "b"}, {"url", "http://127.0.0.1:9"}}});

    json with_credentials(const std::string& path) {
        return json::array({{{"name", "b"},
                             {"url", "http://127.0.0.1:9"},
                             {"kind", "parent"},
                             {"credentials_file", path}}});
    }

    std::vector<wrong_setting> wrong_settings() {
        const auto secret = [](std::string_view content) {
            return [content = std::string{content}](json& into, const temp_dir& at) {
                into["digest"] = {{"secret_file", write_private(at, "secret", content)}};
                into["peers"] = one_peer;
            };
        };
        return {
            {"digest.secret_file",
             [](json& into, const temp_dir& at) {
                 into["digest"] = {{"secret_file", at.file("absent")}};
                 into["peers"] = one_peer;
             }},
            {"digest.secret_file", secret("too short")},
            {"digest.secret_file", secret(std::string(5000, 'x'))},
            {"digest.secret_file",
             [](json& into, const temp_dir& at) {
                 into["digest"] = {{"secret_file", at.path().string()}};
                 into["peers"] = one_peer;
             }},
            {"digest.secret_file",
             [](json& into, const temp_dir& at) {  // nobody reads it, without peers
                 into["digest"] = {{"secret_file", at.file("absent")}};
             },
             false},
            {"peers[0].credentials_file",
             [](json& into, const temp_dir& at) {
                 into["peers"] = with_credentials(at.file("absent"));
             }},
            {"peers[0].credentials_file",
             [](json& into, const temp_dir& at) {
                 into["peers"] = with_credentials(write_private(at, "credentials", "no colon"));
             }},
            {"peers[0].credentials_file",
             [](json& into, const temp_dir& at) {
                 const auto path = at.write("credentials", "user:password");
                 ::chmod(path.c_str(), 0644);
                 into["peers"] = with_credentials(path);
             },
             false},
            {"access.users_file",
             [](json& into, const temp_dir& at) {
                 into["access"]["users_file"] = at.file("absent");
             }},
            {"access.users_file",
             [](json& into, const temp_dir& at) {
                 into["access"]["users_file"] = write_private(at, "users", "ann:plain\n");
             }},
            {"access.tokens_file",
             [](json& into, const temp_dir& at) {
                 into["access"]["tokens_file"] = write_private(at, "tokens", "ann:short\n");
             }},
            {"access.tokens_file",
             [](json& into, const temp_dir& at) {
                 const auto path = at.write("tokens", "ann:0123456789abcdef\n");
                 ::chmod(path.c_str(), 0644);
                 into["access"]["tokens_file"] = path;
             },
             false},
            {"listeners[1].mode",
             [](json& into, const temp_dir& at) {  // whose clients nobody asks
                 into["access"]["tokens_file"] = write_private(
                     at, "tokens", "ann:0123456789abcdef\n");
                 into["listeners"].push_back({{"address", "127.0.0.1:0"},
                                              {"mode", "accelerator"},
                                              {"upstream", "http://127.0.0.1:9"}});
             },
             false},
            {"digest.squid",
             [](json& into, const temp_dir&) {  // and no peer is one
                 into["digest"] = {{"squid", true}};
                 into["peers"] = one_peer;
             },
             false},
            {"access.block_lists[0]",
             [](json& into, const temp_dir& at) {
                 into["access"]["block_lists"] = {at.file("absent")};
             }},
            {"access.block_lists[1]",
             [](json& into, const temp_dir& at) {
                 into["access"]["block_lists"] = {at.write("good", "ads.example\n"),
                                                  at.write("bad", "ads.example\n*\n")};
             }},
            {"log.access",
             [](json& into, const temp_dir& at) { into["log"]["access"] = at.file("none/log"); }},
            {"log.access",
             [](json& into, const temp_dir& at) { into["log"]["access"] = at.path().string(); }},
            {"disk.path",
             [](json& into, const temp_dir& at) {
                 into["disk"] = {{"path", at.write("no-directory", "")}};
             }},
            {"disk.path",
             [](json& into, const temp_dir& at) {
                 into["disk"] = {{"path", at.write("no-directory", "") + "/below"}};
             }},
            {"disk.path",
             [](json& into, const temp_dir& at) {
                 std::filesystem::create_directories(at.path() / "store/lock");
                 into["disk"] = {{"path", at.file("store")}};
             }},
            {"disk.path",
             [](json& into, const temp_dir& at) {
                 std::filesystem::create_directories(at.path() / "store/store");
                 into["disk"] = {{"path", at.file("store")}};
             }},
            {"listeners[0].tls.certificate",
             [](json& into, const temp_dir& at) {
                 into["listeners"][0]["tls"] = {{"certificate", at.write("c", "no PEM")},
                                                {"key", write_private(at, "k", "no PEM")}};
             }},
            {"listeners[0].tls.key",
             [](json& into, const temp_dir& at) {
                 const auto one = self_signed("DNS:a.example"), other = self_signed("DNS:b");
                 into["listeners"][0]["tls"] = {{"certificate", at.write("c", one.certificate)},
                                                {"key", write_private(at, "k", other.key)}};
             }},
            {"listeners[0].address",
             [](json& into, const temp_dir&) {
                 into["listeners"][0]["address"] = "192.0.2.1:0";  // none of this machine's
             }},
            {"admin.address",
             [](json& into, const temp_dir&) { into["admin"]["address"] = "192.0.2.1:0"; }},
            {"admission.state",
             [](json& into, const temp_dir& at) {
                 into["admission"] = {{"state", at.file("none/state")}};
             },
             false},
            {"admission.state",
             [](json& into, const temp_dir& at) {
                 into["admission"] = {{"state", at.path().string()}};
             },
             false},
            {"admin.token_file",
             [](json& into, const temp_dir& at) { into["admin"]["token_file"] = at.file("none"); },
             false},
            {"admin.token_file",
             [](json& into, const temp_dir& at) {
                 into["admin"]["token_file"] = write_private(at, "token", "\n");
             },
             false},
            {"admin.token_file",
             [](json& into, const temp_dir& at) {
                 const auto token = at.write("token", "for everybody");
                 ::chmod(token.c_str(), 0644);
                 into["admin"]["token_file"] = token;
             },
             false},
            {"dns.hosts_file",
             [](json& into, const temp_dir& at) {
                 into["dns"] = {{"hosts_file", at.file("none")}};
             },
             false},
        };
    }

    std::set<std::string> all_below(const temp_dir& at) {
        std::set<std::string> out;
        for (const auto& one : std::filesystem::recursive_directory_iterator{at.path()}) {
            out.insert(one.path());
        }
        return out;
    }

    }  // namespace

    TEST_CASE("whatever ends the start is said before, by its setting; what only harms warns") {
        const auto all = wrong_settings();
        for (std::size_t i = 0; i < all.size(); ++i) {
            CAPTURE(i);
            CAPTURE(all[i].setting);
            const temp_dir at;
            auto settings = basic_settings();
            all[i].write(settings, at);
            const auto file = at.write("settings.json", settings.dump());
            const auto before = all_below(at);
            const auto checked = run_reprise({"--check-config", "--config", file});
            CAPTURE(checked.errors);
            CHECK(all_below(at) == before);
            CHECK(checked.exit_status == (all[i].ends_start ? 1 : 0));
            CHECK(checked.errors.find(file + (all[i].ends_start ? ": " : ": warning: ") +
                                      all[i].setting + ": ") == 0);
            CHECK((checked.output.find("no mistakes") != std::string::npos) == !all[i].ends_start);
            if (all[i].ends_start) {
                const auto started = run_reprise({"--config", file});
                CHECK(started.exit_status == 1);
                CHECK(started.errors == checked.errors);
                CHECK(all_below(at) == before);
            } else {
                proxy_process proxy{settings};
                const auto said = "warning: settings: " + all[i].setting + ": ";
                CHECK(proxy.says(said));
                if (all[i].setting == "admission.state") {
                    CHECK(proxy.stop() == 1);  // it could not be written
                    proxy.kill();
                }
            }
        }
    }

    TEST_CASE("all of it is said at once") {
        const temp_dir at;
        auto settings = basic_settings();
        settings["listeners"][0]["tls"] = {{"certificate", at.file("none")},
                                           {"key", at.file("none")}};
        settings["disk"] = {{"path", at.write("no-directory", "")}};
        settings["log"]["access"] = at.file("none/log");
        settings["admission"] = {{"state", at.file("none/state")}};
        settings["digest"] = {{"secret_file", at.file("none")}};
        settings["peers"] = one_peer;
        settings["admin"]["token_file"] = at.file("none");
        const auto ran = run_reprise(
            {"--check-config", "--config", at.write("settings.json", settings.dump())});
        CHECK(ran.exit_status == 1);
        for (const std::string name : {"listeners[0].tls.certificate",
                                       "listeners[0].tls.key",
                                       "admin.token_file",
                                       "disk.path",
                                       "admission.state",
                                       "log.access",
                                       "digest.secret_file"}) {
            CAPTURE(name);
            CHECK(ran.errors.find(name + ": ") != std::string::npos);
        }
        CHECK(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 7);
    }

    TEST_CASE("mistakes of the settings and of the files that they name are said together") {
        const temp_dir at;
        const auto ca = self_signed("DNS:a.test"), other = self_signed("DNS:b.test");
        const auto key = at.write("ca.key", other.key);
        ::chmod(key.c_str(), 0644);
        auto settings = basic_settings();
        settings["nonsense"] = 1;
        settings["log"]["access"] = at.file("none/log");
        settings["intercept"] = {{"hosts", json::array()},
                                 {"except", {"*", "192.0.2.1"}},
                                 {"ca_certificate", at.write("ca.pem", ca.certificate)},
                                 {"ca_key", key}};
        const auto file = at.write("settings.json", settings.dump());
        const std::vector<std::string> named{"nonsense: ",
                                             "intercept.hosts: ",
                                             "intercept.except[0]: ",
                                             "intercept.except[1]: ",
                                             "log.access: ",
                                             "is not the key of intercept.ca_certificate",
                                             "may be used by others than its owner",
                                             "is none of a CA"};
        const auto check_all = [&](const std::string& said) {
            CAPTURE(said);
            for (const auto& one : named) {
                CAPTURE(one);
                CHECK(said.find(one) != std::string::npos);
            }
        };
        const auto checked = run_reprise({"--check-config", "--config", file});
        CHECK(checked.exit_status == 1);
        CHECK(checked.output.empty());
        check_all(checked.errors);
        const auto started = run_reprise({"--config", file});
        CHECK(started.exit_status == 1);
        check_all(started.errors);
        // A reload says the same, and changes nothing.
        proxy_process proxy{basic_settings()};
        proxy.reload(settings);
        for (const auto& one : named) {
            CAPTURE(one);
            CHECK(proxy.says(one));  // each in a line of its own, one after the other
        }
    }

    TEST_CASE("a store that its file system has no room for is warned of") {
        const temp_dir at;
        auto settings = basic_settings();
        const auto said = [&](const char* size) {
            settings["disk"] = {{"path", at.file("store")}, {"size", size}};
            const auto ran = run_reprise(
                {"--check-config", "--config", at.write("settings.json", settings.dump())});
            CHECK(ran.exit_status == 0);
            return ran.errors.find(
                       "warning: disk.size: \"8TiB\": is more than there is room for") !=
                   std::string::npos;
        };
        CHECK(said("8 TiB"));
        CHECK_FALSE(said("64MiB"));
    }

    TEST_CASE("more memory than the machine has is warned of") {
        const temp_dir at;
        auto settings = basic_settings();
        const auto said = [&](const char* size) {
            settings["memory"] = {{"size", size}};
            const auto ran = run_reprise(
                {"--check-config", "--config", at.write("settings.json", settings.dump())});
            CHECK(ran.exit_status == 0);
            return ran.errors.find("warning: memory.size: \"4TiB\": is, with the ") !=
                   std::string::npos;
        };
        CHECK(said("4TiB"));
        CHECK_FALSE(said("1MiB"));
    }

    TEST_CASE("more connections than there may be file descriptors are warned of") {
        const temp_dir at;
        auto settings = basic_settings();
        const auto few = std::vector<std::string>{"prlimit", "--nofile=4096:4096"};
        const auto said = [&](unsigned most) {
            settings["limits"] = {{"client_connections", most}};
            auto words = few;
            words.insert(words.end(),
                         {program_under_test(),
                          "--check-config",
                          "--config",
                          at.write("settings.json", settings.dump())});
            const auto ran = run_to_its_end(words);
            CHECK(ran.exit_status == 0);
            return ran.errors.find("warning: limits.client_connections: " + std::to_string(most) +
                                   ": is more than the 4096 file descriptors") != std::string::npos;
        };
        CHECK(said(4'097));
        CHECK(said(1'000'000));
        CHECK_FALSE(said(4'096));
        // The start says it, and so does a reload of what would do harm.
        settings["limits"]["client_connections"] = 5'000;
        const proxy_process proxy{settings, start_options{.run_by = few}};
        CHECK(proxy.says("warning: settings: limits.client_connections: 5000: "));
        settings["limits"]["client_connections"] = 6'000;
        proxy.reload(settings);
        CHECK(proxy.says("warning: limits.client_connections: 6000: "));
    }

    TEST_CASE("no advice is given of what is no file of this program's") {
        const temp_dir at;
        auto settings = basic_settings();
        settings["admin"]["token_file"] = at.path().string();
        ::chmod(at.path().c_str(), 0777);
        const auto ran = run_reprise(
            {"--check-config", "--config", at.write("settings.json", settings.dump())});
        CHECK(ran.errors.find("is no regular file") != std::string::npos);
        CHECK(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 1);
    }

    TEST_CASE("a peer whose name has no address is warned of, and another is not") {
        const temp_dir at;
        auto settings = basic_settings();
        settings["dns"] = {{"hosts_file", at.write("hosts", "127.0.0.1 here.test\n")},
                           {"servers", {"127.0.0.1:1"}}};
        settings["peers"] = {{{"name", "a"}, {"url", "http://here.test:3128"}},
                             {{"name", "b"}, {"url", "http://nowhere.test:3128"}}};
        const auto file = at.write("settings.json", settings.dump());
        const auto ran = run_reprise({"--check-config", "--config", file});
        CAPTURE(ran.errors);
        CHECK(ran.exit_status == 0);
        CHECK(ran.errors.find("warning: peers[1].url: \"http://nowhere.test:3128\": resolves to "
                              "nothing now") != std::string::npos);
        CHECK(ran.errors.find("peers[0]") == std::string::npos);
    }

    // An operator checks a file before the running program is told to read it.
    TEST_CASE("what the running program holds is no mistake in its own settings") {
        auto settings = basic_settings();
        const temp_dir at;
        settings["disk"] = {{"path", at.file("store")}, {"size", "64MiB"}};
        const proxy_process proxy{settings};
        settings["listeners"][0]["address"] = "127.0.0.1:" + std::to_string(proxy.port());
        settings["admin"]["address"] = "127.0.0.1:" + std::to_string(proxy.admin_port());
        const auto file = at.write("settings.json", settings.dump());
        const auto ran = run_reprise({"--check-config", "--config", file});
        CAPTURE(ran.errors);
        CHECK(ran.exit_status == 0);
        for (const std::string name : {"listeners[0].address", "admin.address", "disk.path"}) {
            CHECK(ran.errors.find(file + ": now in use: " + name) != std::string::npos);
        }
        CHECK(run_reprise({"--config", file}).exit_status == 1);
        CHECK(proxy.stats().at("disk").at("state") != "off");  // its lock is still its own
    }

}  // TEST_SUITE
