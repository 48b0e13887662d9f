#include "graph/search/graph/walk_graph.hpp"

namespace kith {

std::shared_ptr<const PackedByteRows> packed_centres(const WalkRows& centres, const Resources& resources) {
  if (centres.kind == WalkKind::canonical || !PackedByteRows::suits()) return nullptr;
  const ByteKeyKind kind = centres.kind == WalkKind::squares ? ByteKeyKind::squares : ByteKeyKind::products;
  const ByteKeyRows codes{static_cast<const int8_t*>(centres.values.data()), centres.values.row_stride()};
  return std::make_shared<const PackedByteRows>(kind, codes, centres.count(), resources);
}

}  // namespace kith
