#include "exact/finite_check.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

namespace kith {

void throw_not_finite(std::string_view what, int64_t row) {
  throw InvalidArgument(fmt::format(
      "{} row {} holds a NaN or an infinity; remove it, or switch the check off (check_finite = false)", what, row));
}

}  // namespace kith
