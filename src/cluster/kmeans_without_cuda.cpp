// Replaces the functions that call CUDA in builds without it.
#include "cluster/data/data_survey.hpp"
#include "cluster/data/kmeans_checks.hpp"
#include "cluster/draw/kmeans_plus_plus_cuda.hpp"
#include "cluster/steps/kmeans_backend.hpp"
#include "core/dispatch.hpp"

namespace kith {

std::unique_ptr<KMeansBackend> make_kmeans_cuda(const KMeansShape&, const KMeansRequest&, const KMeansPlan&,
                                                const DataSample&, const Resources&) {
  throw_no_cuda();
}

int64_t survey_cuda(const MatrixView&, const std::vector<float>&, bool, bool, std::vector<double>&, const Resources&) {
  throw_no_cuda();
}

std::vector<uint32_t> choose_plus_plus_cuda(int, const PlusPlusInput&, const CounterRng&, ProgressMeter&,
                                            const Resources&) {
  throw_no_cuda();
}

DataSample sample_cuda(const MatrixView&, int64_t, const Resources&) { throw_no_cuda(); }

int64_t first_not_finite_cuda(const MatrixView&, const Resources&) { throw_no_cuda(); }

}  // namespace kith
