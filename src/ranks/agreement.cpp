#include "ranks/agreement.hpp"

#include <kith/error.hpp>
#include <kith/version.hpp>

#include "core/divide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

namespace kith {
namespace {

// A serialised error: its type, the number and path that some types have, and its text.
enum class ErrorKind : int64_t {
  other,
  invalid_argument,
  invalid_state,
  unsupported,
  io_error,
  corrupt_file,
  out_of_memory,
  device_error,
  cancelled
};

struct SentError {
  ErrorKind kind = ErrorKind::other;
  int64_t number = 0;
  std::string path;
  std::string text;

  std::string packed() const {
    const int64_t head[] = {static_cast<int64_t>(kind), number, static_cast<int64_t>(path.size())};
    return std::string(reinterpret_cast<const char*>(head), sizeof(head)) + path + text;
  }
  static SentError unpacked(const std::string& bytes) {
    int64_t head[3];
    std::memcpy(head, bytes.data(), sizeof(head));
    const auto path_bytes = static_cast<size_t>(head[2]);
    return {static_cast<ErrorKind>(head[0]), head[1], bytes.substr(sizeof(head), path_bytes),
            bytes.substr(sizeof(head) + path_bytes)};
  }
};

SentError sent(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InvalidArgument& e) {
    return {ErrorKind::invalid_argument, 0, "", e.what()};
  } catch (const InvalidState& e) {
    return {ErrorKind::invalid_state, 0, "", e.what()};
  } catch (const Unsupported& e) {
    return {ErrorKind::unsupported, 0, "", e.what()};
  } catch (const IoError& e) {
    return {ErrorKind::io_error, e.code(), e.path(), e.what()};
  } catch (const CorruptFile& e) {
    return {ErrorKind::corrupt_file, e.offset(), e.path(), e.what()};
  } catch (const OutOfMemory& e) {
    return {ErrorKind::out_of_memory, e.bytes_needed(), "", e.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::out_of_memory, 0, "", "the system is out of memory"};
  } catch (const DeviceError& e) {
    return {ErrorKind::device_error, 0, "", e.what()};
  } catch (const Cancelled& e) {
    return {ErrorKind::cancelled, 0, "", e.what()};
  } catch (const std::exception& e) {
    return {ErrorKind::other, 0, "", e.what()};
  } catch (...) {
    return {ErrorKind::other, 0, "", "an unknown error"};
  }
}

template <typename Type>
class Agreed final : public Type, public AgreedByAll {
 public:
  using Type::Type;
};

[[noreturn]] void throw_sent(const SentError& error) {
  const std::string& text = error.text;
  switch (error.kind) {
    case ErrorKind::invalid_argument: throw Agreed<InvalidArgument>(text);
    case ErrorKind::invalid_state: throw Agreed<InvalidState>(text);
    case ErrorKind::unsupported: throw Agreed<Unsupported>(text);
    case ErrorKind::io_error: throw Agreed<IoError>(text, error.path, static_cast<int>(error.number));
    case ErrorKind::corrupt_file: throw Agreed<CorruptFile>(text, error.path, error.number);
    case ErrorKind::out_of_memory: throw Agreed<OutOfMemory>(text, error.number);
    case ErrorKind::device_error: throw Agreed<DeviceError>(text);
    case ErrorKind::cancelled: throw Agreed<Cancelled>();
    case ErrorKind::other: break;
  }
  throw Agreed<Error>(text);
}

}  // namespace

void agree(Communicator& ranks, const std::exception_ptr& own) {
  if (ranks.size() == 1) {
    if (own != nullptr) std::rethrow_exception(own);
    return;
  }
  std::string message;
  if (own != nullptr) {
    SentError error = sent(own);
    // Whether the error already names a rank, from an earlier agreement.
    const bool named = (error.text.starts_with("rank ") && error.text.find(" on ") < error.text.find(": ")) ||
                       error.text.starts_with(ranks.name() + ": ");
    if (!named) error.text = fmt::format("{}: {}", ranks.name(), error.text);
    message = error.packed();
  }
  const auto size = static_cast<size_t>(ranks.size());
  const auto bytes = static_cast<int64_t>(message.size());
  std::vector<int64_t> lengths(size);
  ranks.all_gather(&bytes, std::vector<int64_t>(size, sizeof(bytes)), lengths.data());
  const auto failed = std::find_if(lengths.begin(), lengths.end(), [](int64_t length) { return length > 0; });
  if (failed == lengths.end()) return;
  message.resize(static_cast<size_t>(*failed));
  ranks.broadcast(static_cast<int>(failed - lengths.begin()), message.data(), *failed);
  throw_sent(SentError::unpacked(message));
}

void throw_named(const std::exception_ptr& error, const std::string& name) {
  SentError known = sent(error);
  known.text = fmt::format("{}: {}", name, known.text);
  throw_sent(known);
}

HostPlace place_on_host(Communicator& ranks) {
  const auto own = static_cast<uint64_t>(std::hash<std::string>()(ranks.host()));
  const auto size = static_cast<size_t>(ranks.size());
  std::vector<uint64_t> hosts(size);
  ranks.all_gather(&own, std::vector<int64_t>(size, sizeof(own)), hosts.data());
  return {static_cast<int>(std::count(hosts.begin(), hosts.begin() + ranks.rank(), own)),
          static_cast<int>(std::count(hosts.begin(), hosts.end(), own))};
}

void check_same_request(Communicator& ranks, const std::string& request) {
  const std::string own = fmt::format("Kith {}, {}", version(), request);
  auto bytes = static_cast<int64_t>(own.size());
  ranks.broadcast(0, &bytes, sizeof(bytes));
  std::string first = own;
  first.resize(static_cast<size_t>(bytes));
  ranks.broadcast(0, first.data(), bytes);
  together(ranks, [&] {
    if (own == first) return;
    throw InvalidArgument(
        fmt::format("asked for '{}', and rank 0 for '{}'; all ranks must be given the same", own, first));
  });
}

RankPart part_of(int64_t total, int64_t unit, int rank, int size) {
  const int64_t units = divide_up(total, unit);
  const auto begin = [&](int64_t r) { return std::min(units * r / size * unit, total); };
  return {begin(rank), begin(rank + 1) - begin(rank)};
}

}  // namespace kith
