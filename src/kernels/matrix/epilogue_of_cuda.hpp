// Which epilogue writes a product's target.
#pragma once

#include "kernels/matrix/nearest_epilogue_cuda.hpp"
#include "kernels/matrix/product_epilogue_cuda.hpp"

namespace kith {

// Declared only.
template <typename Acc>
MinimaEpilogue<Acc> epilogue_of(const ProductMinima&, Acc);
template <typename Acc>
CandidatesEpilogue<Acc> epilogue_of(const ProductCandidates&, Acc);
template <typename Acc>
PartsEpilogue<Acc> epilogue_of(const ProductParts&, Acc);
template <typename Acc>
MarksEpilogue<Acc> epilogue_of(const ProductMarks&, Acc);
NearestEpilogue epilogue_of(const ProductNearest&, float);
template <typename Acc>
PairsEpilogue<Acc> epilogue_of(const ProductPairs&, Acc);

template <typename Target, typename Acc>
using EpilogueOf = decltype(epilogue_of(Target(), Acc()));

}  // namespace kith
