// The table of codes: a new one has its line here.
#include "quantize/code_encoder.hpp"
#include "quantize/rabitq_encoder.hpp"

namespace kith {

CodeTable code_table() {
  static const CodeEncoder* const table[] = {kScalarCode,      kStoredCode,   kProductCode,
                                             kLocalSearchCode, kResidualCode, kSignCode};
  return table;
}

}  // namespace kith
