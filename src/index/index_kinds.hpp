// The kinds of index by their factory strings.
//
// A factory string follows FAISS's grammar. Here its numbers are taken out: "IVF4096,PQ32" has the form "IVF#,PQ#" and
// the numbers 4096 and 32. A kind is registered by its form and is made from the numbers.
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

class IndexKinds {
 public:
  // Throws InvalidArgument for numbers or parameters that the kind cannot have.
  using Make = std::function<std::shared_ptr<const IndexKind>(const std::vector<int64_t>& numbers, const IndexParams&)>;

  // Those of the library.
  static const IndexKinds& builtin();

  void add(std::string form, Make make) { kinds_.emplace_back(std::move(form), std::move(make)); }
  // Throws InvalidArgument, naming the known forms, where no kind has the string's.
  std::shared_ptr<const IndexKind> make(std::string_view factory, const IndexParams& params) const;

 private:
  std::vector<std::pair<std::string, Make>> kinds_;
};

// An Index of one of these kinds; Index's own constructor knows those of the library.
KITH_EXPORT Index make_index(const IndexKinds& kinds, std::string_view factory, IndexParams params = {});

}  // namespace kith
