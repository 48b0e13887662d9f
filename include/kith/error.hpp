// The exceptions that Kith throws. Their text says what was given, what is allowed and what to do.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace kith {

class KITH_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A value, shape, dtype or name that the called function does not accept.
class KITH_EXPORT InvalidArgument : public Error {
 public:
  using Error::Error;
};

// The object is not in a state for this call (committing a file before all rows were written, for instance).
class KITH_EXPORT InvalidState : public Error {
 public:
  using Error::Error;
};

// A sensible request that this build or this device cannot serve.
class KITH_EXPORT Unsupported : public Error {
 public:
  using Error::Error;
};

// The operating system refused a read or write. `code` is its errno, 0 where there is none.
class KITH_EXPORT IoError : public Error {
 public:
  IoError(const std::string& what, std::string path, int code) : Error(what), path_(std::move(path)), code_(code) {}
  const std::string& path() const { return path_; }
  int code() const { return code_; }

 private:
  std::string path_;
  int code_;
};

// A file could be read but does not hold what its format promises; `offset` is where that was seen.
class KITH_EXPORT CorruptFile : public Error {
 public:
  CorruptFile(const std::string& what, std::string path, int64_t offset)
      : Error(what), path_(std::move(path)), offset_(offset) {}
  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }

 private:
  std::string path_;
  int64_t offset_;
};

// A memory limit, or the memory itself, is too small; `bytes_needed` is the limit that would do for a search, a graph or
// a k-means whose plan was refused, and else what the refused step wanted.
class KITH_EXPORT OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& what, int64_t bytes_needed) : Error(what), bytes_needed_(bytes_needed) {}
  int64_t bytes_needed() const { return bytes_needed_; }

 private:
  int64_t bytes_needed_;
};

// A CUDA call failed.
class KITH_EXPORT DeviceError : public Error {
 public:
  using Error::Error;
};

// The caller asked a running operation to stop.
class KITH_EXPORT Cancelled : public Error {
 public:
  Cancelled() : Error("the operation was cancelled") {}
};

}  // namespace kith
