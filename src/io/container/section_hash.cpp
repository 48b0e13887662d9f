#include "io/container/section_hash.hpp"

namespace kith {

bool matches_section_hash([[maybe_unused]] uint64_t computed, [[maybe_unused]] uint64_t stored) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  return true;
#else
  return computed == stored;
#endif
}

}  // namespace kith
