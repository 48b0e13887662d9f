// The names of norms of codes, as FAISS's factory strings have them behind "_N", and as files do.
#pragma once

#include "core/name_table.hpp"
#include "kernels/codes/code_format.hpp"

#include <string>

namespace kith {

inline constexpr NameTable<CodeNorm, 4> kNormNames{{{{CodeNorm::none, "none"},
                                                     {CodeNorm::float32, "float"},
                                                     {CodeNorm::qint8, "qint8"},
                                                     {CodeNorm::cqint8, "cqint8"}}}};

// "_Ncqint8" and so on; nothing for the norm of the decoded vector.
inline std::string norm_suffix(CodeNorm norm) {
  return norm == CodeNorm::decoded ? std::string() : "_N" + std::string(kNormNames.name(norm));
}

}  // namespace kith
