#pragma once
// Precompiled: what nearly every test of proxy/ with a loop includes anyway. Not a header to include
// by hand.
#include "proxy/net/pch.hpp"
#include "tests/pch/unit.hpp"
