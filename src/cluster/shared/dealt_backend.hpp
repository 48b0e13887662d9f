// A k-means backend for one rank's part of the rows, around a backend of its own: the common part of sharing among
// processes (kmeans_ranks.cpp) and GPUs (kmeans_devices.cpp).
#pragma once

#include <kith/communicator.hpp>

#include "cluster/steps/kmeans_backend.hpp"
#include "core/host_array.hpp"
#include "ranks/agreement.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kith {

// Rows of a file, of which this rank's part is in memory too.
class HeldRows final : public RowSource {
 public:
  HeldRows(const VectorFile& file, const MatrixView& held, RankPart part) : file_(file), held_(held), part_(part) {}

  RowsInfo info() const override { return file_.info(); }
  void open(int64_t most, const Resources& resources) override { file_.open(most, resources); }
  MatrixView fetch(int64_t first, int64_t count) override {
    const bool has = first >= part_.first && first + count <= part_.first + held_.rows();
    return has ? held_.slice(first - part_.first, count) : file_.fetch(first, count);
  }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    file_.gather(rows, count, out, resources);
  }
  // These rows in one piece, if they are held.
  std::optional<MatrixView> whole(RankPart part) const {
    if (part.first != part_.first || part.count != held_.rows()) return std::nullopt;
    return held_;
  }

 private:
  FileSource file_;
  const MatrixView held_;
  const RankPart part_;
};

// Rows first, first + 1, ... of another source.
class PartSource final : public RowSource {
 public:
  PartSource(RowSource& from, RankPart part) : from_(from), part_(part) {}
  RowsInfo info() const override {
    RowsInfo info = from_.info();
    info.rows = part_.count;
    return info;
  }
  int64_t together(int64_t first) const override {
    return std::min(from_.together(part_.first + first), part_.count - first);
  }
  MatrixView fetch(int64_t first, int64_t count) override { return from_.fetch(part_.first + first, count); }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    std::vector<uint32_t> there(rows, rows + count);
    for (uint32_t& row : there) row += static_cast<uint32_t>(part_.first);
    from_.gather(there.data(), count, out, resources);
  }

 private:
  RowSource& from_;
  const RankPart part_;
};

// The rows of a rank: whole blocks of kSumBlock.
RankPart kmeans_part(int64_t rows, const Communicator& ranks);

// KMeansSharing::survey by ranks that each survey their part.
void survey_on_ranks(Communicator& ranks, DataSurvey& survey, int64_t rows, int64_t cols,
                     const KMeansSharing::SurveyPart& survey_part);

class DealtBackend : public KMeansBackend {
 public:
  // How errors of a rank reach the others: processes agree on them at the end of a pass, threads are woken.
  enum class Errors { agreed, thrown };

  DealtBackend(Communicator& ranks, std::unique_ptr<KMeansBackend> own, int64_t clusters, Errors errors)
      : ranks_(ranks), own_(std::move(own)), clusters_(clusters), errors_(errors) {}

  void set_rows(const KMeansRowArrays& rows) override;
  void set_centres(const MatrixView& centres) override { own_->set_centres(centres); }
  void begin_pass(const KMeansPass& pass) override;
  // `rows` are those that gather() has brought.
  void scan(const MatrixView& rows, int64_t first, ProgressMeter& meter) override;
  void scan_all(RowSource& source, int64_t piece_rows, ProgressMeter& meter) override;

  void get_rows() override;
  void get_labels() override { gather_all(all_.labels); }
  void get_counts(double* counts) override { count_labels(all_, clusters_, counts); }
  std::unique_ptr<CandidateDraws> make_draws(const KMeansRowArrays& rows, const Resources& resources) override;
  MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) override;

  // Ends the pass over all rows; labels and keys of this rank are then on the host. Throws on all ranks what one rank
  // has thrown.
  void end_scan();

 protected:
  // The pass that the own backend makes of its part.
  virtual KMeansPass own_pass(const KMeansPass& pass) const = 0;

  // Keeps an exception until the ranks agree on it; after one, further work is skipped.
  template <typename Work>
  void attempt(const Work& work) {
    if (errors_ == Errors::thrown) return work();
    if (error_ != nullptr) return;
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void agree_now() {
    if (errors_ == Errors::agreed) agree(ranks_, std::exchange(error_, nullptr));
  }

  // The sum of all ranks' blocks of kSumBlock rows, in their order.
  double add_objectives(const std::vector<double>& own_blocks);

  // Gives all ranks the values of every rank's rows.
  template <typename T>
  void gather_all(T* values) {
    std::vector<int64_t> bytes;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      bytes.push_back(array_bytes<T>(part_of(all_.count, kSumBlock, rank, ranks_.size()).count));
    }
    ranks_.all_gather(values + part_.first, bytes, values);
  }

  Communicator& ranks_;
  const std::unique_ptr<KMeansBackend> own_;
  const int64_t clusters_;
  const Errors errors_;
  KMeansRowArrays all_;
  RankPart part_;
  KMeansPass pass_;
  RowSource* source_ = nullptr;  // null: a batch
  std::optional<PartSource> part_source_;  // of source_; rows may be fetched ahead until the next pass
  int64_t piece_rows_ = 0;
  MatrixView batch_;
  ProgressMeter* meter_ = nullptr;

 private:
  std::exception_ptr error_;
};

}  // namespace kith
