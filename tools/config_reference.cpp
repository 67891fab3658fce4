// Writes the settings' reference to standard output:
//   config_reference > config/REFERENCE.md
//   config_reference --man VERSION > reprise.json.5

#include "config/reference.hpp"

#include <iostream>
#include <string_view>

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view{argv[1]} == "--man") {
        std::cout << reprise::config::reference_manual(argv[2]);
    } else if (argc == 1) {
        std::cout << reprise::config::reference_markdown();
    } else {
        std::cerr << "usage: config_reference [--man VERSION]\n";
        return 2;
    }
    std::cout << std::flush;
    return std::cout ? 0 : 1;
}
