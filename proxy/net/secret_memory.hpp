#pragma once
// Private keys in memory: where no core dump takes them along, and without what reading them leaves
// in freed memory. OpenSSL keeps a key's numbers in its secure heap once it has one, but what it
// decodes them from it frees as it was.

namespace reprise::proxy::net {

/// To be called once, before anything of OpenSSL is, by a program that reads keys. Where memory can't
/// be locked, or OpenSSL is in use already, keys lie in the heap, as everything does.
void prepare_secret_memory() noexcept;

/// While one lives, what OpenSSL frees on this thread is wiped, if secret memory was prepared.
class wiping_what_is_freed {
public:
    wiping_what_is_freed() noexcept;
    ~wiping_what_is_freed();
    wiping_what_is_freed(const wiping_what_is_freed&) = delete;
    wiping_what_is_freed& operator=(const wiping_what_is_freed&) = delete;

private:
    bool before_;
};

}  // namespace reprise::proxy::net
