#include "tools/bench_proxy/wrk.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <thread>

namespace reprise::bench {

namespace {

constexpr const char* script = R"lua(
local base, what, size, tag = os.getenv("BASE"), os.getenv("WHAT"), os.getenv("SIZE"), os.getenv("TAG")
local host, close = os.getenv("HOST"), os.getenv("CLOSE")
local threads = 0
function setup(thread) threads = threads + 1; thread:set("id", threads) end
function init()
  n = 0
  wrk.headers["Host"] = host
  if close == "1" then wrk.headers["Connection"] = "close" end
end
function request()
  n = n + 1
  local path
  if what == "one" then path = "/one"
  elseif what == "turn" or what == "mixed" and n % 10 ~= 0 then path = "/o" .. (n % 1000)
  elseif what == "twice" then path = "/" .. tag .. "/" .. id .. "/" .. math.floor(n / 2)
  else path = "/" .. tag .. "/" .. id .. "/" .. n end
  return wrk.format("GET", base .. "/" .. size .. path)
end
)lua";

const char* word_of(asking what) {
    switch (what) {
    case asking::one: return "one";
    case asking::turn: return "turn";
    case asking::fresh: return "fresh";
    case asking::twice: return "twice";
    case asking::mixed: return "mixed";
    }
    return "";
}

double number_in(const std::string& text, const char* pattern) {
    std::smatch found;
    return std::regex_search(text, found, std::regex{pattern}) ? std::stod(found[1]) : 0;
}

double bytes_in(const std::string& text) {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex{R"(([\d.]+)([KMGT]?)B read)"})) {
        return 0;
    }
    const auto power = std::string{" KMGT"}.find(found[2].length() > 0 ? found[2].str() : " ");
    return std::stod(found[1]) * std::pow(1024.0, static_cast<double>(power));
}

}  // namespace

wrk_run::wrk_run(const lab& of, const server& to, const wrk_plan& wanted)
    : of_{of},
      to_{to},
      wanted_{wanted} {
    static unsigned count = 0;
    const auto file = of.wanted.folder + "/load.lua";
    if (!std::filesystem::exists(file)) {
        std::ofstream{file} << script;
    }
    output_ = of.wanted.folder + "/wrk" + std::to_string(++count);
    used_before_ = processor_seconds(to.process.pid());
    asked_before_ = of.origin.requests();
    const auto port = std::to_string(wanted.tls ? to.tls_port : to.port);
    process_ = child::of_program(
        {.words = {"wrk",
                   "-t" + std::to_string(wanted.threads),
                   "-c" + std::to_string(wanted.connections),
                   "-d" + std::to_string(wanted.seconds) + "s",
                   "-s",
                   file,
                   (wanted.tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + port + "/"},
         .environment = {{"BASE", to.is_forward ? of.origin.base() : ""},
                         {"WHAT", word_of(wanted.what)},
                         {"SIZE", std::to_string(wanted.size)},
                         {"TAG", wanted.tag},
                         {"HOST", of.origin.authority()},
                         {"CLOSE", wanted.closes ? "1" : "0"}},
         .log = output_,
         .where = wanted.where});
}

wrk_outcome wrk_run::end() {
    const auto most = std::chrono::steady_clock::now() + std::chrono::seconds{wanted_.seconds + 10};
    while (process_.is_running() && std::chrono::steady_clock::now() < most) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    process_.stop();
    wrk_outcome out;
    const auto spent = processor_seconds(to_.process.pid()) - used_before_;
    std::ifstream in{output_};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    out.requests = number_in(text, R"((\d+) requests in)");
    out.rate = number_in(text, R"(Requests/sec: *([\d.]+))");
    if (out.requests == 0) {
        throw std::runtime_error(to_.name + " answered nothing: " + text);
    }
    // wrk rounds what it says of bytes to two decimals.
    if (number_in(text, R"(Non-2xx or 3xx responses: (\d+))") > 0 ||
        bytes_in(text) / out.requests < 0.99 * static_cast<double>(wanted_.size)) {
        throw std::runtime_error(to_.name + " gave wrong answers: " + text);
    }
    out.processor_us = spent * 1e6 / out.requests;
    out.origin_share = static_cast<double>(of_.origin.requests() - asked_before_) / out.requests;
    return out;
}

}  // namespace reprise::bench
