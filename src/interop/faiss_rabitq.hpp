// RaBitQ codes in FAISS's files.
#pragma once

namespace kith {

class FaissOwnCode;

extern const FaissOwnCode* const kFaissSignCode;

}  // namespace kith
