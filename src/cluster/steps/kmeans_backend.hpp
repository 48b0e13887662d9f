// The steps of k-means on one device. The loops around them (kmeans_loops.cpp) are the same for all backends.
//
//   set_rows(arrays)                 which rows the next passes go over; their labels are forgotten
//   set_centres(centres)             the centres that they are assigned to
//   begin_pass, scan_all, objective  a pass: every row to exactly its nearest centre (assign_cpu.hpp), and where
//                                    asked for the sums of each centre's rows in the order of centre_sums.hpp
//   move_to_means, move_by_batch     the centres of the next pass, made of these sums
//   get_centres, get_rows, ...       what a backend has in memory of its own, brought to the host
//
// Rows are passed in pieces of whole kSumBlock blocks, in order; a piece is valid until the call returns.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/data/data_survey.hpp"
#include "cluster/steps/kmeans_plan.hpp"
#include "core/parallel_for.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kith {

// One value for each row, in host memory: labels and keys are those of the last pass once get_rows() was called. Or,
// where rows are only assigned, in the memory of the device that does it: a pass writes there, and null is not wanted.
struct KMeansRowArrays {
  int64_t count = 0;
  int32_t* labels = nullptr;
  float* keys = nullptr;           // or null on the CPU, for a pass whose objective is not asked for
  const float* weights = nullptr;  // or null
  int64_t first = 0;               // the number of the first one, in messages
  bool on_device = false;          // labels and keys are
};

// What a pass computes beside labels.
struct KMeansPass {
  bool adds_up = false;
  bool scores = true;         // keys and the objective; a backend may write keys that nobody asked for
  bool only_nearer = false;   // than the candidates so far (CandidateDraws): the keys of other rows may be larger ones
  bool labels_known = false;  // those of the pass before are right for these centres: a backend may leave them
  bool adds_in_turn = false;  // with adds_up: rows are added up after the pass (SumsInTurn)
};

// The sums of a GPU that shares a fit with others. GPUs add up in turn, in the order of the rows; each continues the
// sums of the one before, so that sums have a fixed order. All arrays are in that GPU's memory.
class SumsInTurn {
 public:
  virtual ~SumsInTurn() = default;
  virtual int device() const = 0;
  virtual void* work_stream() const = 0;  // that of the backend
  // `size` values each: the totals, clusters x cols and then a weight for each centre, and the same of a block of rows
  // that has not ended. Both may be written before add_labelled(), and the totals before objective().
  virtual int64_t size() const = 0;
  virtual double* totals() = 0;
  virtual double* open_block() = 0;
  // Adds the rows of the last pass by their labels; the first is row `first_row` of all, and `last` tells that no rows
  // follow. Rows that did not stay on the device are fetched from the source again. Returns when it is done.
  virtual void add_labelled(RowSource* source, int64_t piece_rows, int64_t first_row, bool last,
                            ProgressMeter& meter) = 0;
  // After objective(): its blocks of kSumBlock rows, in their order.
  virtual std::vector<double> objective_blocks() const = 0;
};

// The state of the rounds of draw_candidates (first_centres.hpp): for every row the distance to the nearest candidate
// so far, and its number. Draws rows in proportion to weight x distance (draw_tree.hpp). On the host, or in the memory
// of a backend.
//
// Cost of a round: one pass over the distances. Memory: 8 bytes a row.
class CandidateDraws {
 public:
  virtual ~CandidateDraws() = default;
  // After a pass whose centres are candidates first, first + 1, ...: rows that are nearer to one of these become
  // theirs.
  virtual void take_nearer(int64_t first, ProgressMeter& meter) = 0;
  // The sum of weight x distance as it is now, by which rows are drawn.
  virtual double add_up(ProgressMeter& meter) = 0;
  // The rows at these shares of the sum.
  virtual std::vector<uint32_t> draw(const std::vector<double>& shares) = 0;
  // The weight of the rows of each of so many candidates, added up in their order.
  virtual std::vector<float> weights(int64_t candidates) = 0;
};

class KMeansBackend {
 public:
  virtual ~KMeansBackend() = default;
  virtual void set_rows(const KMeansRowArrays& rows) = 0;
  // Takes the planned number of centres, or fewer for a pass that does not add up.
  // The values of `centres` must not change before the next call, but by move_to_means and move_by_batch.
  virtual void set_centres(const MatrixView& centres) = 0;

  virtual void begin_pass(const KMeansPass& pass) = 0;
  // Rows first, first + 1, ... of those that were set.
  virtual void scan(const MatrixView& rows, int64_t first, ProgressMeter& meter) = 0;
  // All rows that were set, which are those of the source, so many at a time. A backend that has kept the rows of the
  // pass before need not fetch them again.
  virtual void scan_all(RowSource& source, int64_t piece_rows, ProgressMeter& meter);
  // Whether the scan of all rows, only assigned on a device, has shown that they need no scale (rows_seen.hpp), if the
  // centres do not.
  virtual bool plain_rows() const { return false; }
  // Ends the pass and returns its objective, 0 if none was asked for: the sum of weight x key, in blocks of kSumBlock
  // rows whose sums are added in order.
  virtual double objective() = 0;

  // After the pass: the weight of each centre's rows; and all sums on the host, where they may be changed. Changes
  // count once put_sums() is called.
  virtual const double* weights() = 0;
  virtual SumsView sums() = 0;
  virtual void put_sums() = 0;

  // As in centre_means.hpp. `centres` are those that were set; get_centres() writes them.
  virtual double move_to_means(const MutableMatrixView& centres) = 0;
  virtual void move_by_batch(const MutableMatrixView& centres, double* counts) = 0;

  virtual void get_centres(const MutableMatrixView& centres) = 0;
  virtual void get_rows() = 0;
  virtual void get_labels() = 0;  // without the keys
  // Keys on the device, of rows and centres times 2^exponent, become distances, or inner products.
  virtual void finish_on_device(int exponent);
  // After either: the weight of each centre's rows, added up in the order of the rows.
  virtual void get_counts(double* counts) = 0;

  // For drawing candidates among these rows, whose labels and keys the passes write; as long as the backend lives.
  virtual std::unique_ptr<CandidateDraws> make_draws(const KMeansRowArrays& rows, const Resources& resources) = 0;

  // The rows listed, one after the other, where scan() takes them from soonest. Valid until the next call.
  virtual MatrixView gather(RowSource& source, const std::vector<uint32_t>& rows) = 0;

  // Null if the sums are not on a GPU.
  virtual SumsInTurn* sums_in_turn() { return nullptr; }
};

std::unique_ptr<KMeansBackend> make_kmeans_cpu(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan,
                                               const DataSample& sample, const Resources& resources);
std::unique_ptr<KMeansBackend> make_kmeans_cuda(const KMeansShape& shape, const KMeansRequest& request,
                                                const KMeansPlan& plan, const DataSample& sample,
                                                const Resources& resources);

// Draws among rows whose labels and keys are in host memory.
std::unique_ptr<CandidateDraws> make_draws_on_host(const KMeansRowArrays& rows, const Resources& resources);

// How several processes or devices share a fit: each calls it with the same rows and parameters, and processes a part
// of the rows. Implementations are in shared/.
class KMeansSharing {
 public:
  virtual ~KMeansSharing() = default;
  // What the own backend is planned and made for: as many rows as it will see at most.
  virtual KMeansShape own_shape(const KMeansShape& shape) const { return shape; }
  // First centres that need no pass: choose() fills them.
  virtual void begin(const std::function<void()>& choose, const MutableMatrixView&) const { choose(); }
  // A backend that does together with the others what `own` would do alone. It allocates with `resources`.
  virtual std::unique_ptr<KMeansBackend> share(std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                                               const KMeansRequest& request, const KMeansPlan& plan,
                                               const Resources& resources) const = 0;
  // Calls survey(source, first row, count) for this process's part of the rows, and adds up the results of all.
  using SurveyPart = std::function<void(int64_t first, int64_t count)>;
  virtual void survey(DataSurvey& survey, int64_t rows, int64_t cols, const SurveyPart& survey_part) const = 0;
};

// The weight of each centre's rows, added up in the order of the rows.
void count_labels(const KMeansRowArrays& rows, int64_t clusters, double* counts);

// On the device that the plan is for.
std::unique_ptr<KMeansBackend> make_kmeans_backend(const KMeansShape& shape, const KMeansRequest& request,
                                                   const KMeansPlan& plan, const DataSample& sample,
                                                   const Resources& resources);

}  // namespace kith
