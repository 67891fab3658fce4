#include "filter/sha256.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <span>
#include <string>

namespace reprise::filter {

using test::hex;

namespace {

std::string sum_of(const std::string& text) {
    return hex(sha256(std::as_bytes(std::span{text})));
}

}  // namespace

TEST_SUITE("filter/sha256") {
    // printf TEXT | sha256sum
    TEST_CASE("known answers") {
        CHECK(sum_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        CHECK(sum_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    TEST_CASE("texts that end anywhere in a block") {
        const std::string as(200, 'a');
        CHECK(sum_of(as.substr(0, 55)) ==
              "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
        CHECK(sum_of(as.substr(0, 56)) ==
              "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
        CHECK(sum_of(as.substr(0, 63)) ==
              "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
        CHECK(sum_of(as.substr(0, 64)) ==
              "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
        CHECK(sum_of(as.substr(0, 119)) ==
              "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
        CHECK(sum_of(as) == "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5");
    }
}

}  // namespace reprise::filter
