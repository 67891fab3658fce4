#pragma once
// Precompiled: what nearly every test of the whole program includes anyway. Not a header to include
// by hand.
#include "tests/pch/unit.hpp"
#include "tests/support/fake_origin.hpp"
#include "tests/support/proxy_process.hpp"
