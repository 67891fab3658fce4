// Writes config/REFERENCE.md to standard output:
//   config_reference > config/REFERENCE.md

#include "config/reference.hpp"

#include <iostream>

int main() {
    std::cout << reprise::config::reference_markdown() << std::flush;
    return std::cout ? 0 : 1;
}
