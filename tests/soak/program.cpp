// The program of one of this folder's runs, REPRISE_SOAK. All runs are compiled together: most of what each of them costs a
// compiler is what they all include.

namespace reprise::tests::REPRISE_SOAK {
int run(int argc, char** argv);
}  // namespace reprise::tests::REPRISE_SOAK

int main(int argc, char** argv) {
    return reprise::tests::REPRISE_SOAK::run(argc, argv);
}
