#pragma once
// Precompiled: what nearly every program that drives the proxy includes anyway. Not a header to include by hand.
#include "tests/support/fake_origin.hpp"
#include "tests/support/proxy_process.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>
