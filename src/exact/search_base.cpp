#include "exact/search_base.hpp"

#include <algorithm>

namespace kith {

void walk_base(const SearchBase& base, int64_t chunk, const BaseStep& step) {
  const int64_t rows = base.rows.rows();
  for (int64_t first = 0; first < rows;) {
    const int64_t block = base.rows.together(first);
    const PreparedBase* const ready = base.layouts == nullptr ? nullptr : base.layouts->of(first);
    const int64_t count = ready != nullptr ? block : std::min(chunk, block);
    step(base.rows.fetch(first, count), first, ready);
    first += count;
  }
}

}  // namespace kith
