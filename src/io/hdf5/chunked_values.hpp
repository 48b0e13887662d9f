// The values of a dataset that is stored in chunks, or not at all.
//
// A request goes through the chunks that it touches, rows of chunks one after the other, and unpacks each once. Since
// one may ask for a few rows at a time, the chunks of the last row stay: up to 16 MiB of them, or one if it is larger.
// With one more buffer, for the filters, this is all the memory it takes. Requests of several threads wait for each
// other.
#pragma once

#include "io/hdf5/dataset.hpp"
#include "io/value_reader.hpp"

#include <memory>

namespace kith {

std::unique_ptr<const ValueReader> make_chunked_values(Hdf5Source source, Hdf5Dataset dataset);

}  // namespace kith
