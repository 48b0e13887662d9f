#include "ivf/search/pieced_lists_cuda.hpp"

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/reservation.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "ivf/segment/prepared_segment.hpp"

#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <memory>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Pinned arrays of a segment, so that copies from them run at the speed of the bus. Kept with the segment, and released
// before its arrays are.
//
// Only arrays with pages of their own are pinned, as a whole: a copy must not cross memory that is partly pinned.
class PinnedLists final : public PreparedSegment {
 public:
  explicit PinnedLists(const ListSegment& segment) {
    pin(segment.codes(), segment.size() * segment.code_bytes());
    pin(segment.rows(), array_bytes<uint32_t>(segment.size()));
  }
  ~PinnedLists() override {
    for (const void* const begin : pinned_) (void)cudaHostUnregister(const_cast<void*>(begin));
  }
  int64_t bytes() const override { return 0; }  // on the device

  bool has(const void* array) const { return std::find(pinned_.begin(), pinned_.end(), array) != pinned_.end(); }

 private:
  // What cannot be pinned is copied all the same. Host buffers so large begin a mapping of their own.
  void pin(const void* begin, int64_t bytes) {
    constexpr int64_t kPage = 4096;
    constexpr int64_t kLeast = int64_t{32} << 20;
    if (bytes < kLeast || reinterpret_cast<uintptr_t>(begin) % kPage != 0) return;
    void* const memory = const_cast<void*>(begin);
    if (cudaHostRegister(memory, static_cast<size_t>(round_up(bytes, kPage)), cudaHostRegisterDefault) == cudaSuccess) {
      pinned_.push_back(begin);
    } else {
      (void)cudaGetLastError();
    }
  }

  std::vector<const void*> pinned_;
};

// Null if the lists are in a mapped file.
std::shared_ptr<const PinnedLists> pinned_lists(int device, const SegmentCopies& segment, const ListSegment& here) {
  if (here.is_mapped()) return nullptr;
  const PreparedAs<PinnedLists> pinned;
  const Device there = Device::cuda(device);
  std::shared_ptr<const PreparedSegment> kept = segment.prepared().find(there, pinned);
  if (kept == nullptr) {
    const DeviceGuard guard(device);
    kept = segment.prepared().keep(there, std::make_shared<const PinnedLists>(here), pinned);
  }
  return std::static_pointer_cast<const PinnedLists>(kept);
}

// A segment on the host, whose lists go over.
struct HostLists {
  Segment segment;
  std::shared_ptr<const PinnedLists> pinned;
};

// Consecutive vectors of one segment: whole lists.
struct ListPiece {
  const ListSegment* segment = nullptr;
  const PinnedLists* pinned = nullptr;
  int64_t first = 0;
  int64_t end = 0;
  int64_t filled = 0;  // lists that have vectors
  int64_t size() const { return end - first; }
};

// Whole lists of `most` vectors at most in each piece; a longer list is by itself.
std::vector<ListPiece> cut_into_pieces(const std::vector<HostLists>& all, int64_t most) {
  std::vector<ListPiece> pieces;
  for (const HostLists& lists : all) {
    const ListSegment& segment = *lists.segment;
    ListPiece piece{&segment, lists.pinned.get()};
    for (int64_t list = 0; list < segment.lists(); ++list) {
      const int64_t end = segment.offsets()[list + 1];
      if (end - piece.first > most && piece.size() > 0) {
        pieces.push_back(piece);
        piece.first = piece.end;
        piece.filled = 0;
      }
      piece.filled += end > piece.end ? 1 : 0;
      piece.end = end;
    }
    if (piece.size() > 0) pieces.push_back(piece);
  }
  return pieces;
}

int64_t longest_list(const std::vector<HostLists>& all) {
  int64_t longest = 1;
  for (const HostLists& lists : all) {
    for (int64_t list = 0; list < lists.segment->lists(); ++list) longest = std::max(longest, lists.segment->size_of(list));
  }
  return longest;
}

// A piece on its way to the GPU, where it is prepared too, with memory from the beginning on.
class ComingPiece {
 public:
  ComingPiece(const PiecedLists& lists, const ListPiece& piece, const Resources& resources)
      : lists_(lists),
        piece_(piece),
        resources_(resources.with_progress({}).with_cancel(CancelToken())),
        offsets_(piece.segment->lists() + 1, "the lists' offsets", resources),
        there_(std::make_shared<ListSegment>(lists.device, piece.segment->lists(), piece.size(), piece.segment->code_bytes(),
                                             resources)) {}

  void begin() {
    coming_ = start_beside([this] { return bring(); });
  }
  std::shared_ptr<const PreparedSegmentCuda> take() { return coming_.get(); }

 private:
  std::shared_ptr<const PreparedSegmentCuda> bring() {
    const DeviceGuard guard(lists_.device);
    const auto context = work_context(lists_.device, resources_);
    const ListSegment& from = *piece_.segment;
    for (int64_t list = 0; list < offsets_.size(); ++list) {
      offsets_[list] = std::clamp(from.offsets()[list], piece_.first, piece_.end) - piece_.first;
    }
    const ListArrays& to = there_->to_fill();
    const int64_t bytes = piece_.size() * from.code_bytes();
    RowUpload upload(!is_pinned(from.codes()) && wants_pinned({}, bytes, resources_), resources_);
    context->copy_values(to.offsets, offsets_.data(), offsets_.size());
    copy(to.codes, from.code(piece_.first), bytes, is_pinned(from.codes()), upload, *context);
    copy(to.rows, from.rows() + piece_.first, array_bytes<uint32_t>(piece_.size()), is_pinned(from.rows()), upload, *context);
    context->synchronize();
    return std::make_shared<const PreparedSegmentCuda>(there_, lists_.model, lists_.there, resources_);
  }

  bool is_pinned(const void* array) const { return piece_.pinned != nullptr && piece_.pinned->has(array); }
  void copy(void* to, const void* from, int64_t bytes, bool pinned, RowUpload& upload, const DeviceContext& context) const {
    if (pinned) return context.copy(to, from, bytes);
    ProgressMeter meter("copy", 1, resources_);
    upload.copy({from, DType::u8, {1, bytes, bytes}}, static_cast<std::byte*>(to), context.stream(), meter);
  }

  const PiecedLists& lists_;
  const ListPiece piece_;
  const Resources resources_;
  HostArray<int64_t> offsets_;
  const std::shared_ptr<ListSegment> there_;
  std::future<std::shared_ptr<const PreparedSegmentCuda>> coming_;  // the last member: it ends first
};

// A part of each list's vectors, in runs of neighbours that are spread over all of it.
class ListSample {
 public:
  static constexpr int64_t kRun = 16;

  // `each`: vectors of a list, at most; whole runs.
  ListSample(const std::vector<HostLists>& from, int64_t lists, int64_t code_bytes, int64_t each, const Resources& resources)
      : from_(from),
        each_(each),
        code_bytes_(code_bytes),
        offsets_(lists + 1, "the lists' offsets", resources),
        codes_(count(from, lists, each) * code_bytes, "a sample of the lists", resources),
        rows_(count(from, lists, each), "a sample of the lists", resources) {
    int64_t at = 0;
    for (int64_t list = 0; list < lists; ++list) {
      offsets_[list] = at;
      for (const HostLists& some : from_) at += taken(some.segment->size_of(list), each);
    }
    offsets_[lists] = at;
    const Resources quiet = resources.with_progress({});
    constexpr int64_t kTaskLists = 64;
    ProgressMeter meter("sample", lists, quiet);
    parallel_for(divide_up(lists, kTaskLists), meter, quiet, [&](int64_t task, int) {
      for (int64_t list = task * kTaskLists; list < std::min((task + 1) * kTaskLists, lists); ++list) gather(list);
    });
  }

  int64_t size() const { return rows_.size(); }
  const HostArray<int64_t>& offsets() const { return offsets_; }
  const HostArray<uint8_t>& codes() const { return codes_; }
  const HostArray<uint32_t>& rows() const { return rows_; }

 private:
  static int64_t taken(int64_t length, int64_t each) { return std::min(length, each); }
  static int64_t count(const std::vector<HostLists>& from, int64_t lists, int64_t each) {
    int64_t all = 0;
    for (const HostLists& some : from) {
      for (int64_t list = 0; list < lists; ++list) all += taken(some.segment->size_of(list), each);
    }
    return all;
  }

  void gather(int64_t list) {
    int64_t to = offsets_[list];
    for (const HostLists& some : from_) {
      const ListSegment& segment = *some.segment;
      const int64_t begin = segment.offsets()[list];
      const int64_t length = segment.size_of(list);
      const int64_t runs = length <= each_ ? 1 : each_ / kRun;
      const int64_t rows = length <= each_ ? length : kRun;
      for (int64_t run = 0; run < runs; ++run) {
        const int64_t first = begin + run * (length / runs);
        std::copy_n(segment.code(first), rows * code_bytes_, codes_.data() + to * code_bytes_);
        std::copy_n(segment.rows() + first, rows, rows_.data() + to);
        to += rows;
      }
    }
  }

  const std::vector<HostLists>& from_;
  const int64_t each_;
  const int64_t code_bytes_;
  HostArray<int64_t> offsets_;
  HostArray<uint8_t> codes_;
  HostArray<uint32_t> rows_;
};

// Vectors of a piece.
struct PieceSize {
  int64_t vectors = 0;
  bool overlaps = false;  // with the copy of the next one
};

// The size of a piece that leaves room for the next piece and half of the memory for the search's batches; at least
// the longest list. `footprint`: of a search of that many vectors, including them; `bytes`: of the vectors alone.
template <typename FootprintOf, typename BytesOf>
PieceSize choose_piece(int64_t longest, int64_t all, int64_t available, const FootprintOf& footprint,
                       const BytesOf& bytes) {
  const auto fits = [&](int64_t vectors) { return footprint(vectors) + bytes(vectors) <= available / 2; };
  if (!fits(longest)) return {longest, false};
  int64_t known = longest;
  for (int64_t beyond = all; beyond - known > known / 16;) {
    const int64_t middle = known + (beyond - known) / 2;
    (fits(middle) ? known : beyond) = middle;
  }
  return {known, true};
}

// Lists of the host that come to the device piece by piece, with the memory that was reserved for them.
class HostListPieces final : public ListPieces {
 public:
  HostListPieces(const PiecedLists& lists, const std::vector<HostLists>& here, PieceSize size, const Resources& resources)
      : lists_(lists), here_(here), size_(size), resources_(resources), pieces_(cut_into_pieces(here, size.vectors)) {
    for (const HostLists& some : here) all_ += some.segment->size();
  }

  size_t count() const { return pieces_.size(); }

  void begin() override {
    next_ = 0;
    coming_.reset();
    if (size_.overlaps) bring(0);
  }

  Piece sample() override {
    const int64_t lists = lists_.model.lists();
    const int64_t segments = static_cast<int64_t>(here_.size());
    const int64_t most = std::min({kSampleOfList, all_ / lists / kSampleShare, size_.vectors / lists}) / segments;
    const int64_t each = most / ListSample::kRun * ListSample::kRun;
    const int64_t code_bytes = here_[0].segment->code_bytes();
    const int64_t room = resources_.host_memory()->available() / 2;  // pieces on their way may want some
    if (each == 0 || pieces_.size() < 2 || lists * segments * each * (code_bytes + 4) > room) return {};
    try {
      const ListSample sample(here_, lists, code_bytes, each, resources_);
      const auto there = std::make_shared<ListSegment>(lists_.device, lists, sample.size(), code_bytes, resources_);
      const auto context = work_context(lists_.device, resources_);
      const ListArrays& to = there->to_fill();
      context->copy_values(to.offsets, sample.offsets().data(), sample.offsets().size());
      context->copy_values(to.codes, sample.codes().data(), sample.codes().size());
      context->copy_values(to.rows, sample.rows().data(), sample.rows().size());
      context->synchronize();
      return {std::make_shared<const PreparedSegmentCuda>(there, lists_.model, lists_.there, resources_), lists};
    } catch (const OutOfMemory&) {  // it can do without
      return {};
    }
  }

  Piece next() override {
    if (next_ == pieces_.size()) return {};
    const ListPiece& piece = pieces_[next_++];
    if (coming_ == nullptr) bring(next_ - 1);
    Piece now{coming_->take(), piece.filled};
    coming_.reset();
    if (size_.overlaps && next_ < pieces_.size()) bring(next_);
    return now;
  }

 private:
  static constexpr int64_t kSampleOfList = 128;  // vectors
  static constexpr int64_t kSampleShare = 16;    // no more than one in so many

  void bring(size_t piece) {
    coming_ = std::make_unique<ComingPiece>(lists_, pieces_[piece], resources_);
    coming_->begin();
  }

  const PiecedLists& lists_;
  const std::vector<HostLists>& here_;
  const PieceSize size_;
  const Resources resources_;
  const std::vector<ListPiece> pieces_;
  int64_t all_ = 0;  // vectors
  size_t next_ = 0;
  std::unique_ptr<ComingPiece> coming_;
};

}  // namespace

bool may_be_in_pieces(int device, const std::vector<SharedSegment>& segments, const Resources& resources) {
  const bool limited = resources.options().device_memory_limit != kNoLimit;  // also where memory is counted
  if (resources.device() != Device::cuda(device) || !limited) return false;
  return !segments.empty() && std::all_of(segments.begin(), segments.end(), [&](const SharedSegment& segment) {
    return segment->space().host_readable() && segment->copies().find(Device::cuda(device)) == nullptr;
  });
}

void search_in_pieces(const PiecedLists& lists, const MatrixView& queries, const IvfSearch& search,
                      const SearchPieces& search_pieces, const Resources& given) {
  // Pieces have no room for what a search can do without.
  const Resources resources = SpareDeviceMemory::with(given, 0);
  const int device = lists.device;
  std::vector<HostLists> here;
  int64_t all = 0;
  for (const SharedSegment& segment : lists.segments) {
    if (segment->size() == 0) continue;
    here.push_back({segment->on(Device::cpu(), resources), nullptr});
    all += segment->size();
  }
  if (here.empty() || queries.rows() == 0) return;
  const int64_t count = lists.model.lists();
  const int64_t code_bytes = here[0].segment->code_bytes();
  const int64_t longest = longest_list(here);
  const HostArray<int64_t> sizes(count, "the lists' sizes", resources);
  const HostArray<uint32_t> narrow_sizes(count, "the lists' sizes", resources);
  IvfSearch each = search;
  each.sizes = narrow_sizes.data();
  // What is known of pieces of so many vectors.
  const auto in_pieces = [&](int64_t vectors, ListPieces* pieces) -> InPieces {
    return {pieces, std::clamp<int64_t>(count * vectors / all, 1, count), longest};
  };
  const auto make_piece = [&](int64_t vectors, const Resources& counting) {
    const auto piece = std::make_shared<ListSegment>(device, count, vectors, code_bytes, counting);
    return std::make_shared<const PreparedSegmentCuda>(piece, lists.model, lists.there, counting);
  };
  // What a piece takes while it is made.
  const auto bytes = [&](int64_t vectors) {
    return counted(resources, [&](const Resources& counting) { (void)make_piece(vectors, counting); }).device;
  };
  // A piece whose memory is only counted.
  const auto like_piece = [&](int64_t vectors) {
    std::shared_ptr<const PreparedSegmentCuda> like;
    (void)counted(resources, [&](const Resources& counting) { like = make_piece(vectors, counting); });
    return like;
  };
  const auto count_piece = [&](int64_t vectors, const Resources& counting) {
    const HostArray<int64_t> offsets(2 * (count + 1), "the lists' offsets", counting);
    const Reservation piece(0, bytes(vectors), counting);
    search_pieces(like_piece(vectors), in_pieces(vectors, nullptr), each, counting);
  };
  if (counts_only(resources)) return count_piece(longest, resources);

  for (size_t i = 0, at = 0; i < lists.segments.size(); ++i) {
    if (lists.segments[i]->size() == 0) continue;
    here[at].segment->check_lists();
    here[at].pinned = pinned_lists(device, *lists.segments[i], *here[at].segment);
    ++at;
  }
  // A query whose lists are short looks at more of them, by the sizes of all.
  std::fill(sizes.begin(), sizes.end(), int64_t{0});
  if (search.fewest > 0) {
    for (const HostLists& some : here) some.segment->add_sizes(search.kept, sizes.data(), resources);
  }
  std::copy(sizes.begin(), sizes.end(), narrow_sizes.begin());

  const auto footprint = [&](int64_t vectors) {
    return counted(resources, [&](const Resources& counting) { count_piece(vectors, counting); }).device;
  };
  const PieceSize size = choose_piece(longest, all, resources.device_memory()->available(), footprint, bytes);
  const Reservation reserved(0, (size.overlaps ? 2 : 1) * bytes(size.vectors), resources);
  const DeviceGuard guard(device);
  const Resources for_pieces = resources.with_budgets(resources.host_memory(), reserved.resources().device_memory());
  HostListPieces pieces(lists, here, size, for_pieces);
  resources.log(LogLevel::debug, fmt::format("lists of {} vectors are searched in {} pieces", all, pieces.count()));
  search_pieces(like_piece(size.vectors), in_pieces(size.vectors, &pieces), each, resources);
}

}  // namespace kith
