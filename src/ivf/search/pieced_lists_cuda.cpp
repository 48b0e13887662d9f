#include "ivf/search/pieced_lists_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "ivf/search/host_lists_cuda.hpp"
#include "ivf/search/piece_slots_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace kith {
namespace {

// How much of the lists is on the device at a time.
struct PieceSize {
  int64_t vectors = 0;  // of a piece
  int64_t slots = 1;    // pieces: one is searched, the others are on their way
};

// With three slots all that the lists take, the least search beside them included, is within three eighths of the
// memory: the rest is for the queries, which should be searched in one batch. Pieces on their way keep the bus busy
// while queries are ranked and while a piece takes longer than its copy; but small ones take longer to search than to
// copy. A piece is at least the longest list. `footprint(size)` is that of a search, `bytes(vectors)` of a slot.
template <typename FootprintOf, typename BytesOf>
PieceSize choose_piece(int64_t longest, int64_t all, int64_t available, const FootprintOf& footprint,
                       const BytesOf& bytes) {
  constexpr int64_t kLeastBytes = int64_t{32} << 20;  // for more than two slots
  constexpr int64_t kMostBytes = int64_t{256} << 20;  // more would not be faster
  for (const int64_t slots : {3, 2}) {
    const int64_t most = slots > 2 ? available / 8 * 3 : available / 2;
    const auto fits = [&](int64_t vectors) {
      return bytes(vectors) <= kMostBytes && footprint(PieceSize{vectors, slots}) <= most;
    };
    if (footprint(PieceSize{longest, slots}) > most) continue;
    int64_t known = longest;
    for (int64_t beyond = all; beyond - known > std::max<int64_t>(1, known / 16);) {
      const int64_t middle = known + (beyond - known) / 2;
      (fits(middle) ? known : beyond) = middle;
    }
    if (slots == 2 || bytes(known) >= kLeastBytes) return {known, slots};
  }
  return {longest, 1};
}

// Lists of the host that come to the device piece by piece.
//
// A stream of its own copies piece after piece, each as soon as a slot is free, which the search's stream tells by an
// event; that stream waits for the copy in the same way, prepares the piece and searches it. So the bus and the GPU's
// processors work at the same time; the host waits only for the counts of probes, and to stay within two pieces of the
// search. Arrays that could not be pinned are copied by a thread
// instead, one piece at a time.
class HostListPieces final : public ListPieces {
 public:
  HostListPieces(const PiecedLists& lists, const std::vector<HostLists>& here, PieceSize size,
                 const Resources& resources)
      : lists_(lists),
        here_(here),
        size_(size),
        resources_(resources.with_progress({}).with_cancel(CancelToken())),
        pieces_(cut_into_pieces(here, size.vectors)),
        copying_(work_context(lists.device, resources)),
        slots_(lists.model, *lists.there,
               {static_cast<int64_t>(here.size()), static_cast<int64_t>(pieces_.size()), size.slots, size.vectors},
               copying_, resources),
        probing_(static_cast<int64_t>(pieces_.size()), "queries of the pieces", resources),
        most_repeats_(static_cast<int64_t>(here.size()), "repeated codes", resources),
        uncounted_(here.size()) {
    for (size_t i = 0; i < here.size(); ++i) {
      all_ += here[i].segment->size();
      copying_->copy_values(slots_.offsets_of(i), here[i].segment->offsets(), slots_.lists() + 1);
    }
    copying_->synchronize();  // the memory is there for other streams, too
  }

  size_t count() const { return pieces_.size(); }

  void begin() override {
    if (coming_.valid()) coming_.wait();
    coming_ = {};
    free_.resize(slots_.count());
    std::iota(free_.begin(), free_.end(), size_t{0});
    brought_.clear();
    in_use_.reset();
    next_ = 0;
    knows_probes_ = false;
    counts_repeats_ = false;
    std::fill(uncounted_.begin(), uncounted_.end(), 0);
    for (const ListPiece& piece : pieces_) ++uncounted_[piece.segment];
    keeps_slot_ = true;
    bring();
  }

  void expect(const RankedProbes& ranked, const DeviceContext& searching) override {
    const auto count = static_cast<int64_t>(pieces_.size());
    searching.fill(slots_.probing(), 0, count);
    searching.fill(slots_.most_repeats(), 0, static_cast<int64_t>(here_.size()));
    for (size_t i = 0; i < pieces_.size(); ++i) {
      launch_count_here(ranked, range_of(pieces_[i]), slots_.probing() + i, searching.stream());
    }
    searching.copy_values(probing_.data(), slots_.probing(), count);
    searching.synchronize();
    knows_probes_ = true;
  }

  std::optional<Piece> sample(const DeviceContext& searching) override {
    std::optional<Piece> made = make_sample(searching);
    keeps_slot_ = false;
    if (!made) bring();
    return made;
  }

  std::optional<Piece> next(const DeviceContext& searching) override {
    for (;;) {
      bring();
      if (brought_.empty() && next_ < pieces_.size()) throw InvalidState("lists in pieces: no memory is free for a piece");
      if (brought_.empty()) return std::nullopt;
      const Brought now = brought_.front();
      brought_.pop_front();
      if (coming_.valid() && brought_.empty()) coming_.get();  // the last one is a thread's
      in_use_ = now.slot;
      if (probing_[static_cast<int64_t>(now.piece)].queries > 0) return prepared(now, searching);
      release(searching);
    }
  }

  void release(const DeviceContext& searching) override {
    slots_[*in_use_].freed->record(searching.stream());
    free_.push_back(*in_use_);
    in_use_.reset();
    bring();
    // The host is no more than two pieces ahead, so that a search can be cancelled.
    ends_[released_++ % ends_.size()].record(searching.stream());
    ends_[released_ % ends_.size()].wait();
  }

  void end(const DeviceContext& searching) override {
    if (counts_repeats_) searching.copy_values(most_repeats_.data(), slots_.most_repeats(), most_repeats_.size());
    searching.synchronize();
    for (size_t i = 0; i < here_.size() && counts_repeats_; ++i) {
      const auto& pinned = here_[i].pinned;
      if (pinned == nullptr || pinned->repeats() != PinnedLists::Repeats::unknown) continue;
      if (most_repeats_[static_cast<int64_t>(i)] >= kLeastRepeats) {
        pinned->found_repeats(PinnedLists::Repeats::some);
      } else if (uncounted_[i] == 0) {
        pinned->found_repeats(PinnedLists::Repeats::none);
      }
    }
  }

 private:
  static constexpr int64_t kSampleOfList = 128;  // vectors
  static constexpr int64_t kSampleShare = 16;    // no more than one in so many

  struct Brought {
    size_t piece = 0;
    size_t slot = 0;
  };

  PieceRange range_of(const ListPiece& piece) const {
    return {slots_.offsets_of(piece.segment), slots_.lists(), piece.first, piece.end};
  }

  size_t take_slot() {
    const size_t slot = free_.front();
    free_.pop_front();
    return slot;
  }

  // Starts as many copies as there are slots, but the one that a sample will want.
  void bring() {
    const size_t kept = keeps_slot_ ? 1 : 0;
    while (next_ < pieces_.size() && free_.size() > kept && !coming_.valid()) {
      const size_t piece = next_++;
      if (knows_probes_ && probing_[static_cast<int64_t>(piece)].queries == 0) continue;
      const size_t slot = take_slot();
      brought_.push_back({piece, slot});
      if (here_[pieces_[piece].segment].is_pinned()) {
        copy_pinned(pieces_[piece], slots_[slot]);
      } else {
        coming_ = start_beside([this, piece, slot] { copy_pageable(pieces_[piece], slots_[slot]); });
      }
    }
  }

  void copy_pinned(const ListPiece& piece, PieceSlot& to) const {
    const ListSegment& from = *here_[piece.segment].segment;
    to.freed->hold_up(copying_->stream());
    copying_->copy(to.codes, from.code(piece.first), piece.size() * from.code_bytes());
    copying_->copy_values(to.rows, from.rows() + piece.first, piece.size());
    to.copied->record(copying_->stream());
  }

  // By a thread of its own. Arrays that are pinned are copied as they are.
  void copy_pageable(const ListPiece& piece, PieceSlot& to) const {
    const DeviceGuard guard(lists_.device);
    const HostLists& lists = here_[piece.segment];
    const ListSegment& from = *lists.segment;
    const bool has_codes = lists.pinned != nullptr && lists.pinned->has_codes();
    const bool has_rows = lists.pinned != nullptr && lists.pinned->has_rows();
    const int64_t bytes = piece.size() * from.code_bytes();
    RowUpload upload(!has_codes && wants_pinned({}, bytes, resources_), resources_);
    const auto copy = [&](void* target, const void* values, int64_t count, bool pinned) {
      if (pinned) return copying_->copy(target, values, count);
      ProgressMeter meter("copy", 1, resources_);
      upload.copy({values, DType::u8, {1, count, count}}, static_cast<std::byte*>(target), copying_->stream(), meter);
    };
    to.freed->hold_up(copying_->stream());
    copy(to.codes, from.code(piece.first), bytes, has_codes);
    copy(to.rows, from.rows() + piece.first, array_bytes<uint32_t>(piece.size()), has_rows);
    to.copied->record(copying_->stream());
    copying_->synchronize();
  }

  // The search's stream has the piece from here on.
  Piece prepared(const Brought& now, const DeviceContext& searching) {
    const ListPiece& piece = pieces_[now.piece];
    PieceSlot& slot = slots_[now.slot];
    const cudaStream_t stream = searching.stream();
    slot.copied->hold_up(stream);
    launch_piece_offsets(range_of(piece), slot.offsets, stream);
    Piece made;
    made.scanned = prepared_slot(slot, piece.size(), piece.longest, stream);
    made.scanned.repeats = ranked_repeats(piece, slot, made.scanned.lists, stream);
    made.filled = piece.filled;
    made.range = range_of(piece);
    made.probes = probing_[static_cast<int64_t>(now.piece)];
    made.taken = &slots_.probing()[now.piece].taken;
    return made;
  }

  PreparedSegmentCuda::Scanned prepared_slot(PieceSlot& slot, int64_t vectors, int64_t longest,
                                             cudaStream_t stream) const {
    DeviceListsView view = slot.view;
    view.count = vectors;
    if (!slot.has_codewords) launch_prepare_codewords(view, slot.prepared, stream);
    slot.has_codewords = true;
    launch_prepare_vectors(view, slot.prepared, stream);
    return {view, slot.prepared, nullptr, longest};
  }

  // Null once a search has found that no code repeats often; until then repeats are ranked, and counted where that is not
  // known.
  const uint16_t* ranked_repeats(const ListPiece& piece, const PieceSlot& slot, const DeviceListsView& view,
                                 cudaStream_t stream) {
    const auto& pinned = here_[piece.segment].pinned;
    const auto known = pinned == nullptr ? PinnedLists::Repeats::some : pinned->repeats();
    if (known == PinnedLists::Repeats::none) return nullptr;
    launch_rank_repeats(view, slot.ranks, stream);
    if (known == PinnedLists::Repeats::unknown) {
      launch_count_repeats(view, slots_.most_repeats() + piece.segment, stream);
      --uncounted_[piece.segment];
      counts_repeats_ = true;
    }
    return slot.ranks;
  }

  // Lists of so few vectors have no code that repeats often.
  static_assert(kSampleOfList < int64_t{kLeastRepeats});
  std::optional<Piece> make_sample(const DeviceContext& searching) {
    const int64_t lists = slots_.lists();
    const auto segments = static_cast<int64_t>(here_.size());
    const int64_t most = std::min({kSampleOfList, all_ / lists / kSampleShare, size_.vectors / lists}) / segments;
    const SampleShape shape{most / SampleShape::kRun * SampleShape::kRun};
    const int64_t code_bytes = here_[0].segment->code_bytes();
    const auto wanted = std::count_if(probing_.begin(), probing_.end(),
                                      [](const PieceProbes& probes) { return probes.queries > 0; });
    if (shape.each == 0 || wanted < 2) return std::nullopt;
    const bool on_device = std::all_of(here_.begin(), here_.end(), [](const HostLists& some) {
      return some.is_pinned() && some.pinned->codes_on_device() != nullptr && some.pinned->rows_on_device() != nullptr;
    });
    const int64_t room = resources_.host_memory()->available() / 2;  // pieces on their way may want some
    if (!on_device && lists * segments * shape.each * (code_bytes + 4) > room) return std::nullopt;
    try {
      const HostArray<int64_t> offsets(lists + 1, "the lists' offsets", resources_);
      const int64_t size = shape.place(here_, lists, offsets.data());
      std::optional<ListSample> sample;
      if (!on_device) sample.emplace(here_, shape, offsets, resources_);
      in_use_ = take_slot();
      PieceSlot& slot = slots_[*in_use_];
      const cudaStream_t stream = searching.stream();
      slot.copied->hold_up(stream);  // of queries that were left out
      searching.copy_values(slot.offsets, offsets.data(), lists + 1);
      if (sample) {
        searching.copy_values(slot.codes, sample->codes().data(), sample->codes().size());
        searching.copy_values(slot.rows, sample->rows().data(), sample->rows().size());
      }
      for (int64_t i = 0; i < (sample ? 0 : segments); ++i) {
        const PinnedLists& from = *here_[static_cast<size_t>(i)].pinned;
        launch_gather_sample({slots_.offsets_of(0), lists, i, shape.each, SampleShape::kRun, code_bytes,
                              from.codes_on_device(), from.rows_on_device(), slot.offsets, slot.codes, slot.rows},
                             stream);
      }
      Piece made;
      made.scanned = prepared_slot(slot, size, shape.each * segments, stream);
      made.filled = lists;
      searching.synchronize();  // before the host's arrays are freed
      return made;
    } catch (const OutOfMemory&) {  // it can do without
      if (!in_use_) return std::nullopt;
      slots_[*in_use_].freed->record(searching.stream());  // behind what has been enqueued there
      free_.push_back(*in_use_);
      in_use_.reset();
      return std::nullopt;
    }
  }

  const PiecedLists& lists_;
  const std::vector<HostLists>& here_;
  const PieceSize size_;
  const Resources resources_;
  const std::vector<ListPiece> pieces_;
  const std::shared_ptr<const DeviceContext> copying_;
  PieceSlots slots_;
  const HostArray<PieceProbes> probing_;
  const HostArray<uint32_t> most_repeats_;  // of each segment
  std::vector<int64_t> uncounted_;          // pieces of each segment whose repeats were not counted
  bool counts_repeats_ = false;
  int64_t all_ = 0;  // vectors
  bool knows_probes_ = false;
  bool keeps_slot_ = true;  // for the sample
  size_t next_ = 0;          // piece to bring
  std::deque<size_t> free_;  // slots
  std::deque<Brought> brought_;
  std::optional<size_t> in_use_;
  std::array<Event, 3> ends_;  // of the searches of the last pieces, in turns
  size_t released_ = 0;
  std::future<void> coming_;  // the last piece brought, if it is not pinned; the last member: it ends first
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
  const auto segments = static_cast<int64_t>(here.size());
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
  // A piece whose memory is only counted.
  const auto like_piece = [&](int64_t vectors) {
    std::shared_ptr<const PreparedSegmentCuda> like;
    (void)counted(resources, [&](const Resources& counting) { like = make_piece(vectors, counting); });
    return like;
  };
  const auto make_slots = [&](const PieceSize& size, const Resources& counting) {
    const PieceSlots::Sizes sizes_of{segments, segments * count, size.slots, size.vectors};
    return std::make_unique<PieceSlots>(lists.model, *lists.there, sizes_of, work_context(device, counting), counting);
  };
  const auto bytes = [&](int64_t vectors) {
    return counted(resources, [&](const Resources& counting) { (void)make_slots({vectors, 1}, counting); }).device;
  };
  const auto count_search = [&](const PieceSize& size, const Resources& counting) {
    const HostArray<int64_t> offsets(count + 1, "the lists' offsets", counting);
    const HostArray<PieceProbes> probing(segments * count, "queries of the pieces", counting);
    const HostArray<uint32_t> most_repeats(segments, "repeated codes", counting);
    const auto slots = make_slots(size, counting);
    search_pieces(like_piece(size.vectors), in_pieces(size.vectors, nullptr), each, counting);
  };
  if (counts_only(resources)) return count_search({longest, 1}, resources);

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

  const auto footprint = [&](const PieceSize& size) {
    return counted(resources, [&](const Resources& counting) { count_search(size, counting); }).device;
  };
  const PieceSize size = choose_piece(longest, all, resources.device_memory()->available(), footprint, bytes);
  const DeviceGuard guard(device);
  HostListPieces pieces(lists, here, size, resources);
  resources.log(LogLevel::debug, fmt::format("lists of {} vectors are searched in {} pieces", all, pieces.count()));
  search_pieces(like_piece(size.vectors), in_pieces(size.vectors, &pieces), each, resources);
}

}  // namespace kith
