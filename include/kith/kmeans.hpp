// k-means: finds centres that make the sum of squared distances from each row to its nearest centre small.
//
// Lloyd's algorithm: assign every row to its nearest centre, move every centre to the mean of its rows, repeat.
// Assignments are exact: a row's centre is the first by (squared distance, centre), where a distance is computed in
// float64 from the stored values and rounded once to f32. Means are summed in float64 in an order fixed by the row
// numbers. So the same input, parameters and seed give the same bytes for any number of threads and any memory limit,
// on every processor and GPU, from files as from memory.
//
// Rows and the outputs of predict() and transform() may be in the memory of a GPU, which then does the work; everything
// else is in host memory. Functions return when their result is complete; in a GPU's memory it is complete in the order
// of the resources' stream, if they name one.
#pragma once

#include <kith/export.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace kith {

enum class KMeansInit : uint8_t {
  kmeans_plus_plus,  // rows drawn one by one, those far from the chosen ones more likely (greedy k-means++)
  random,            // distinct rows, all equally likely
  given,             // KMeansInput::centres
};

// "kmeans++", "random", "given".
KITH_EXPORT std::string_view name_of(KMeansInit init);
KITH_EXPORT KMeansInit parse_kmeans_init(std::string_view name);

inline constexpr int64_t kAutomaticInitPoints = -1;

struct KMeansParams {
  int64_t clusters = 8;
  int64_t iterations = 25;  // at most; for mini-batches in units of all rows
  double tol = 1e-4;   // stop when the centres' squared moves add up to at most tol times the columns' mean variance
  int64_t n_init = 1;  // runs from different starts, of which the one with the lowest objective is kept
  KMeansInit init = KMeansInit::kmeans_plus_plus;
  uint64_t seed = 0;
  int64_t max_points_per_centre = 0;  // train on a sample of this many rows per centre; 0: on all rows
  // k-means++ considers a sample of this many rows per centre; 0: all rows. Automatic: all rows if that is cheap; for
  // many centres, candidates are drawn from all rows in rounds and k-means++ chooses among them.
  int64_t init_points_per_centre = kAutomaticInitPoints;
  bool spherical = false;      // centres of length 1; a row belongs to the centre with the largest inner product
  int64_t batch_size = 0;      // rows per mini-batch; 0: whole passes (Lloyd)
  bool compute_labels = true;  // a last pass, so that labels and objective belong to the final centres
  bool history = true;         // keep the objective of each iteration; off, iterations take less time on a CPU
  bool check_finite = true;    // refuse NaN and infinities, naming the row; without it the result is undefined

  KITH_EXPORT void validate() const;
};

// Optional input beside the rows.
struct KMeansInput {
  VectorView<const float> weights;  // one per row, at least 0; empty: all 1
  MatrixView centres;               // for KMeansInit::given: clusters x dimension
};

// The result of one fit, all in host memory; it never changes. The views stay valid as long as a copy of the snapshot
// that KMeans::snapshot() returned lives, whatever is fitted meanwhile, and longer than the KMeans itself.
struct KMeansSnapshot {
  MatrixView centres;                // clusters x dimension, f32; for f64 rows less the offset
  VectorView<const double> counts;   // the weight that each centre has seen
  VectorView<const int32_t> labels;  // of the rows of this fit; empty without compute_labels
  double objective = 0;              // as KMeans::objective()
  std::vector<double> history;       // as KMeans::history()
  int64_t iterations = 0;            // as KMeans::iterations()
  std::vector<double> offset = {};              // as KMeans::offset()
  std::shared_ptr<const void> owner = nullptr;  // keeps what the views show; null for a caller's own arrays
};

// One thread may fit while others predict: these use the centres of the fit before.
class KITH_EXPORT KMeans {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit KMeans(KMeansParams params);
  ~KMeans();
  KMeans(KMeans&&) noexcept;
  KMeans& operator=(KMeans&&) noexcept;

  // If this throws, the previous fit stays.
  void fit(const MatrixView& rows, const KMeansInput& input = {}, const Resources& resources = Resources());
  // The file may be larger than the memory limit; it is read in pieces, once per pass.
  void fit(const VectorFile& rows, const KMeansInput& input = {}, const Resources& resources = Resources());

  // Updates the centres with one mini-batch. The first call chooses them from its rows, or takes input.centres.
  void partial_fit(const MatrixView& rows, const KMeansInput& input = {}, const Resources& resources = Resources());

  // The nearest centre of each row, and its distance, or for spherical the inner product. Each output has a value per
  // row, in host memory or that of the GPU that does the work, or is empty if it is not wanted: labels alone take a GPU
  // less time.
  void predict(const MatrixView& rows, const VectorView<int32_t>& labels, const VectorView<float>& distances,
               const Resources& resources = Resources()) const;
  // The same for arrays in host memory; either may be null.
  void predict(const MatrixView& rows, int32_t* labels, float* distances,
               const Resources& resources = Resources()) const {
    predict(rows, VectorView<int32_t>{labels, labels == nullptr ? 0 : rows.rows(), {}},
            VectorView<float>{distances, distances == nullptr ? 0 : rows.rows(), {}}, resources);
  }
  using LabelSink =
      std::function<void(int64_t first_row, int64_t count, const int32_t* labels, const float* distances)>;
  void predict(const VectorFile& rows, const LabelSink& sink, const Resources& resources = Resources()) const;

  // The distance from each row to every centre, for spherical the inner product: rows x clusters, f32.
  void transform(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources = Resources()) const;

  // Uses the given centres, clusters x dimension, instead of fitting.
  void set_centres(const MatrixView& centres, const Resources& resources = Resources());

  // Centres, counts, labels and the rest, all of the last fit. Costs nothing: the snapshot shares them. InvalidState
  // before the first fit.
  KMeansSnapshot snapshot() const;

  // Continues from a snapshot of a KMeans with the same parameters: every later call, partial_fit() too, returns the
  // same bytes as it would there. InvalidArgument for a snapshot that no fit can have made.
  void restore(const KMeansSnapshot& snapshot, const Resources& resources = Resources());

  const KMeansParams& params() const;
  bool fitted() const;
  int64_t dimension() const;  // columns of the centres; 0 before the first fit
  // The value of each column that is subtracted from f64 rows, and from all rows that are predicted or transformed
  // later (kith/view.hpp); empty: none. The centres of snapshot() are less this offset. Files of rows cannot be
  // predicted then.
  std::vector<double> offset() const;
  double objective() const;             // sum of weight x squared distance; spherical: minus the sum of inner products
  std::vector<double> history() const;  // the objective at each iteration, before the centres moved; or empty
  int64_t iterations() const;           // done; mini-batches count by passes, partial_fit by calls

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kith
