#include "interop/faiss_kinds.hpp"

#include "interop/faiss_own_code.hpp"
#include "interop/faiss_rabitq.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {
namespace {

constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
    {"IxFI", "IndexFlatIP"},
    {"IxF2", "IndexFlatL2"},
    {"IxFl", "IndexFlat"},
    {"IxHe", "IndexLSH"},
    {"IxHE", "IndexLSH"},
    {"IxPq", "IndexPQ"},
    {"IxPQ", "IndexPQ"},
    {"IxPo", "IndexPQ"},
    {"IPfs", "IndexPQFastScan"},
    {"IxRq", "IndexResidualQuantizer"},
    {"IxLS", "IndexLocalSearchQuantizer"},
    {"IxPR", "IndexProductResidualQuantizer"},
    {"IxPL", "IndexProductLocalSearchQuantizer"},
    {"ILfs", "IndexLocalSearchQuantizerFastScan"},
    {"IRfs", "IndexResidualQuantizerFastScan"},
    {"IPLf", "IndexProductLocalSearchQuantizerFastScan"},
    {"IPRf", "IndexProductResidualQuantizerFastScan"},
    {"IVLf", "IndexIVFLocalSearchQuantizerFastScan"},
    {"IVRf", "IndexIVFResidualQuantizerFastScan"},
    {"NPLf", "IndexIVFProductLocalSearchQuantizerFastScan"},
    {"NPRf", "IndexIVFProductResidualQuantizerFastScan"},
    {"ImRQ", "ResidualCoarseQuantizer"},
    {"ImLQ", "LocalSearchCoarseQuantizer"},
    {"Imiq", "MultiIndexQuantizer"},
    {"Ix2L", "Index2Layer"},
    {"Viqt", "ITQTransform"},
    {"Viqm", "ITQMatrix"},
    {"HRot", "HadamardRotation"},
    {"IxSQ", "IndexScalarQuantizer"},
    {"IxLa", "IndexLattice"},
    {"IvFl", "IndexIVFFlat of an old version"},
    {"IvPQ", "IndexIVFPQ of an old version"},
    {"IvQR", "IndexIVFPQR of an old version"},
    {"IwFd", "IndexIVFFlatDedup"},
    {"IwFl", "IndexIVFFlat"},
    {"IwSq", "IndexIVFScalarQuantizer"},
    {"IwLS", "IndexIVFLocalSearchQuantizer"},
    {"IwRQ", "IndexIVFResidualQuantizer"},
    {"IwPL", "IndexIVFProductLocalSearchQuantizer"},
    {"IwPR", "IndexIVFProductResidualQuantizer"},
    {"IwSh", "IndexIVFSpectralHash"},
    {"IwPQ", "IndexIVFPQ"},
    {"IwQR", "IndexIVFPQR"},
    {"IwIQ", "IndexIVFIndependentQuantizer"},
    {"IwPf", "IndexIVFPQFastScan"},
    {"IxPT", "IndexPreTransform"},
    {"IxRF", "IndexRefine"},
    {"IxMp", "IndexIDMap"},
    {"IxM2", "IndexIDMap2"},
    {"IHNf", "IndexHNSWFlat"},
    {"IHNp", "IndexHNSWPQ"},
    {"IHNs", "IndexHNSWSQ"},
    {"IHN2", "IndexHNSW2Level"},
    {"IHc2", "IndexHNSWCagra"},
    {"IHNc", "IndexHNSWCagra"},
    {"INSf", "IndexNSGFlat"},
    {"INSp", "IndexNSGPQ"},
    {"INSs", "IndexNSGSQ"},
    {"INNf", "IndexNNDescentFlat"},
    {"IRMf", "IndexRowwiseMinMax"},
    {"IRMh", "IndexRowwiseMinMaxFP16"},
    {"Ixrq", "IndexRaBitQ"},
    {"Iwrq", "IndexIVFRaBitQ"},
    {"ISVD", "IndexSVSVamana"},
    {"IBxF", "IndexBinaryFlat"},
    {"IBwF", "IndexBinaryIVF"},
    {"IBFf", "IndexBinaryFromFloat"},
    {"IBHf", "IndexBinaryHNSW"},
    {"IBHh", "IndexBinaryHash"},
    {"IBHm", "IndexBinaryMultiHash"},
    {"IBMp", "IndexBinaryIDMap"},
    {"IBM2", "IndexBinaryIDMap2"},
};

}  // namespace

std::string faiss_kind(std::string_view tag) {
  for (const auto& [letters, name] : kKinds) {
    if (letters == tag) return fmt::format("{} ('{}')", name, tag);
  }
  return fmt::format("the kind '{}'", tag);
}

std::span<const FaissOwnCode* const> faiss_own_codes() {
  static const FaissOwnCode* const codes[] = {kFaissSignCode};
  return codes;
}

const FaissOwnCode* own_code_of(std::string_view tag) {
  for (const FaissOwnCode* const code : faiss_own_codes()) {
    if (code->tag() == tag || code->list_tag() == tag) return code;
  }
  return nullptr;
}

const FaissOwnCode* own_code_of(const CodeFormat& format) {
  for (const FaissOwnCode* const code : faiss_own_codes()) {
    if (code->is_of(format)) return code;
  }
  return nullptr;
}

}  // namespace kith
