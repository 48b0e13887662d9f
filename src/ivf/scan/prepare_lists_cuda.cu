// A warp for each vector, four columns a lane at a time; a thread for each vector of product codes, whose squares are
// looked up; for codes that repeat a block for each list.
#include "ivf/scan/prepare_lists_cuda.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/lookups_cuda.hpp"
#include "kernels/codes/code_reader_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

#include <algorithm>

namespace kith {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kWarpVectors = 32;  // one after the other

// For floats that are not negative; NaN counts as infinite.
__device__ void raise(float* to, float value) {
  if (!(value < HUGE_VALF)) value = HUGE_VALF;
  atomicMax(vectors<int>(to), __float_as_int(value));
}

__device__ float4 origin_four(const float* centre, int first, int cols) {
  return centre == nullptr ? float4{0, 0, 0, 0} : four_columns(centre, first, cols);
}

// Calls use(position, list) for the warp's vectors.
template <typename Use>
__device__ void for_vectors(const DeviceListsView& lists, const Use& use) {
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int64_t first = warp * kWarpVectors;
  if (first >= lists.count) return;
  const int64_t end = first + kWarpVectors < lists.count ? first + kWarpVectors : lists.count;
  int64_t list = list_between(lists.offsets, 0, lists.lists - 1, first);
  for (int64_t position = first; position < end; ++position) {
    while (lists.offsets[list + 1] <= position) ++list;
    use(position, list);
  }
}

// The value of a stored vector's column, from its decoded `value`.
__device__ float stored_of(const DeviceListsView& lists, float value, float origin) {
  return lists.residual ? __fadd_rn(origin, value) : value;
}

// What a vector is multiplied by to have length 1; 0 for the zero vector. By a warp.
__device__ double unit_factor(const DeviceListsView& lists, int64_t position, int64_t list, int64_t code_bytes) {
  const int cols = static_cast<int>(lists.codec.format.cols);
  const float* const centre = lists.residual && lists.centres != nullptr ? lists.centres + list * cols : nullptr;
  double square = 0;
  for (int first = threadIdx.x % 32 * 4; first < cols; first += 128) {
    const FourFloats four = decode_four(lists.codec, lists.codes + position * code_bytes, first);
    const float4 origin = origin_four(centre, first, cols);
    const float origins[4] = {origin.x, origin.y, origin.z, origin.w};
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const double stored = first + i < cols ? stored_of(lists, four.values[i], origins[i]) : 0.0f;
      square = fma(stored, stored, square);
    }
  }
  square = warp_sum(square);
  return square == 0 ? 0.0 : 1 / sqrt(square);
}

__global__ void __launch_bounds__(kThreads) largest_kernel(DeviceListsView lists, int64_t code_bytes, float* largest) {
  const int cols = static_cast<int>(lists.codec.format.cols);
  const bool subtracts = lists.subtracts();
  // Normalized queries are rounded to f32: a much finer fp16 scale gains nothing, and squares must not be too large.
  constexpr float kLeastUnit = 0x1p-12f;
  float mine = lists.unit ? kLeastUnit : 0.0f;
  const auto look = [&](float value) {
    if (fabsf(value) < HUGE_VALF) mine = fmaxf(mine, fabsf(value));
  };
  if (lists.codec.format.copies_codewords()) {
    const int64_t values = lists.codec.format.codewords() * cols;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < values; i += gridDim.x * kThreads) {
      look(lists.codec.codewords[i]);
    }
  } else {
    for_vectors(lists, [&](int64_t position, int64_t list) {
      const float* const centre = subtracts ? lists.centres + list * cols : nullptr;
      const double factor = lists.unit ? unit_factor(lists, position, list, code_bytes) : 1.0;
      for (int first = threadIdx.x % 32 * 4; first < cols; first += 128) {
        FourFloats four = decode_four(lists.codec, lists.codes + position * code_bytes, first);
        const float4 origin = origin_four(centre, first, cols);
        if (lists.unit) {
          const float origins[4] = {origin.x, origin.y, origin.z, origin.w};
          KITH_UNROLL
          for (int i = 0; i < 4; ++i) {
            four.values[i] = static_cast<float>(stored_of(lists, four.values[i], origins[i]) * factor);
          }
        }
        look(four.values[0] - origin.x);
        look(four.values[1] - origin.y);
        look(four.values[2] - origin.z);
        look(four.values[3] - origin.w);
      }
    });
  }
  mine = warp_largest(mine);
  if (threadIdx.x % 32 == 0 && mine > 0) raise(largest, mine);
}

// One thread per fp16 value, ordered by code `number`, step, quarter and column of its unit, the last varying fastest;
// for wide vectors in the order of the codewords.
__global__ void __launch_bounds__(kThreads)
    table_kernel(const __grid_constant__ DeviceListsView lists, int64_t count, const float* largest, uint16_t* table) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const CodeFormat& format = lists.codec.format;
  if (format.cols > kNarrowSteps * 16) {
    const int64_t places = codeword_places(format.part_cols());
    const int64_t word = i / places;  // of all parts
    const int64_t col = i % places - first_codeword_place(word / 256, format.part_cols());
    const bool there = col >= 0 && col < format.part_cols();
    const float value = there ? lists.codec.codewords[word * format.part_cols() + col] : 0.0f;
    table[i] = __half_as_ushort(__float2half_rn(value * operand_scale(*largest)));
    return;
  }
  const auto step = static_cast<int>(i / (kTableStepBytes / 2));
  const auto within = static_cast<int>(i % (kTableStepBytes / 2));
  const int number = within / 16;
  const int col = 4 * unit_of(unit_order(format), step, within % 16 / 4) + within % 4;
  float word = 0;
  if (col < format.cols) {
    const auto each = static_cast<int>(format.part_cols());
    word = lists.codec.codewords[(static_cast<int64_t>(col / each) * 256 + number) * each + col % each];
  }
  table[i] = __half_as_ushort(__float2half_rn(word * operand_scale(*largest)));
}

// The maxima of one list's vectors, by one thread at a time; NaN counts as infinite. They are raised in memory once for
// a list, not for each vector: all threads would wait for the same words.
class OwnMaxima {
 public:
  __device__ explicit OwnMaxima(ListMaxima* all) : all_(all) {}

  // The vectors that follow are this list's.
  __device__ void turn_to(int64_t list) {
    if (list == list_) return;
    write();
    list_ = list;
    own_ = {0, 0, 0};
  }
  __device__ void add(float norm, float residual, float factor) {
    own_.norm = larger(own_.norm, norm);
    own_.residual = larger(own_.residual, residual);
    own_.factor = larger(own_.factor, factor);
  }
  __device__ void write() const {
    if (list_ < 0) return;
    if (own_.norm > 0) raise(&all_[list_].norm, own_.norm);
    if (own_.residual > 0) raise(&all_[list_].residual, own_.residual);
    if (own_.factor > 0) raise(&all_[list_].factor, own_.factor);
  }

 private:
  __device__ static float larger(float a, float b) { return b < HUGE_VALF ? fmaxf(a, b) : HUGE_VALF; }

  ListMaxima* all_;
  int64_t list_ = -1;
  ListMaxima own_ = {0, 0, 0};
};

__global__ void __launch_bounds__(kThreads)
    maxima_kernel(DeviceListsView lists, int64_t code_bytes, PreparedLists prepared) {
  const int cols = static_cast<int>(lists.codec.format.cols);
  const auto half_cols = static_cast<int>(PreparedLists::half_cols(cols));
  const float scale = operand_scale(*prepared.largest);
  const bool by_norm = lists.key().by_norm;
  const bool subtracts = lists.subtracts();
  const bool has_origin = lists.has_origin();
  OwnMaxima maxima(prepared.maxima);
  for_vectors(lists, [&](int64_t position, int64_t list) {
    const float* const centre = lists.centres == nullptr ? nullptr : lists.centres + list * cols;
    double square = 0;
    double residual = 0;
    double stored_square = 0;
    double moved_square = 0;
    const double unit = lists.unit ? unit_factor(lists, position, list, code_bytes) : 1.0;
    for (int first = threadIdx.x % 32 * 4; first < half_cols; first += 128) {
      FourFloats four = decode_four(lists.codec, lists.codes + position * code_bytes, first);
      const float4 origin = origin_four(has_origin ? centre : nullptr, first, cols);
      const float origins[4] = {origin.x, origin.y, origin.z, origin.w};
      float4 scaled = {subtracts ? origin.x * scale : 0, subtracts ? origin.y * scale : 0,
                       subtracts ? origin.z * scale : 0, subtracts ? origin.w * scale : 0};
      double centred[4];
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const double stored = stored_of(lists, four.values[i], origins[i]);
        if (first + i < cols) stored_square += stored * stored;
        centred[i] = stored * unit - origins[i];
        if (lists.unit) four.values[i] = static_cast<float>(centred[i] * scale);
      }
      if (lists.unit) scaled = {0, 0, 0, 0};
      const uint2 rounded = halves_of(four, lists.unit ? 1.0f : scale, scaled);
      if (prepared.halves != nullptr) {
        store_vector(prepared.halves + position * half_cols + first, rounded);
      }
      const FourFloats halves = floats_of(rounded);
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (first + i >= cols) break;
        const double moved = centred[i] * scale - halves.values[i];
        moved_square += centred[i] * centred[i];
        square += static_cast<double>(halves.values[i]) * halves.values[i];
        residual += moved * moved;
      }
    }
    square = warp_sum(square);
    residual = warp_sum(residual);
    stored_square = warp_sum(stored_square);
    moved_square = warp_sum(moved_square);
    if (threadIdx.x % 32 != 0) return;
    if (unit == 0) square += static_cast<double>(scale) * scale;  // a zero vector, of cosine
    double factor = 1;
    if (lists.has_factors()) {
      // Where the norm is out of f32's range the factor is not to be trusted.
      const double norm = sqrt(stored_square) * scale;
      factor = norm == 0 ? 0.0 : norm > 1e-30 && norm < 1e30 ? 1 / norm : HUGE_VAL;
    }
    maxima.turn_to(list);
    const auto own_norm = static_cast<float>(factor * sqrt(square) * (1 + 0x1p-20));
    const auto own_residual = static_cast<float>(factor * sqrt(residual) * (1 + 0x1p-20));
    if (lists.has_factors()) {
      prepared.terms[position] = static_cast<float>(factor);
      maxima.add(own_norm, own_residual, static_cast<float>(factor));
    } else if (by_norm) {
      const double norm = code_norm(lists.codec, lists.codes + position * code_bytes);
      const auto term = static_cast<float>((moved_square + (norm - stored_square)) * scale * scale / 2);
      prepared.terms[position] = term;
      // Adds what float64 loses when a norm is far larger than the remaining difference.
      const double largest = 2 * fabs(static_cast<double>(term)) + stored_square * scale * scale * 0x1p-23;
      maxima.add(own_norm, own_residual, static_cast<float>(largest * (1 + 0x1p-20)));
    } else {
      maxima.add(own_norm, own_residual, 0);
      if (prepared.terms == nullptr) return;
      prepared.terms[position] = static_cast<float>(square / 2);
      if (prepared.upper_terms == nullptr) return;
      const double slack = row_slack(operand_cols(lists.codec.format), square, residual);
      prepared.upper_terms[position] = static_cast<float>((square + slack) / 2);
      prepared.lower_terms[position] = static_cast<float>((square - slack) / 2);
    }
  });
  maxima.write();
}

// A thread for each codeword: |b|^2 of its halves, and what rounding moved, squared.
__global__ void __launch_bounds__(kThreads)
    codeword_squares_kernel(const __grid_constant__ DeviceListsView lists, const float* largest, float* squares) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const CodeFormat& format = lists.codec.format;
  if (i >= format.parts * 256) return;
  const float scale = operand_scale(*largest);
  const auto cols = static_cast<int>(format.part_cols());
  double square = 0;
  double moved_square = 0;
  for (int col = 0; col < cols; ++col) {
    const float value = lists.codec.codewords[i * cols + col] * scale;
    const double half = __half2float(__float2half_rn(value));
    const double moved = value - half;
    square = fma(half, half, square);
    moved_square = fma(moved, moved, moved_square);
  }
  squares[2 * i] = static_cast<float>(square);
  squares[2 * i + 1] = __double2float_ru(moved_square);
}

// The sums of a product code's squares. The first is added in float64: it becomes a term, of which estimates expect no
// more than rounding. The other may be a little large.
class SquareSums {
 public:
  __device__ explicit SquareSums(const DeviceListsView& lists, const float2* squares)
      : squares_(squares),
        parts_(static_cast<int>(lists.codec.format.parts)),
        whole_(parts_ % 16 == 0 && reinterpret_cast<uintptr_t>(lists.codes) % 16 == 0) {}

  __device__ void look_up(const uint8_t* code, double& square, float& moved_square) const {
    square = 0;
    moved_square = 0;
    if (whole_) {
      for (int first = 0; first < parts_; first += 16) {
        const uint4 loaded = load_vector<uint4>(code + first);
        const uint32_t words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
        KITH_UNROLL
        for (int i = 0; i < 16; ++i) add(first + i, words[i / 4] >> (8 * (i % 4)) & 255u, square, moved_square);
      }
    } else {
      for (int part = 0; part < parts_; ++part) add(part, code[part], square, moved_square);
    }
    moved_square *= 1 + 0x1p-16f;
  }

 private:
  __device__ void add(int part, uint32_t number, double& square, float& moved_square) const {
    const float2 one = squares_[part * 256 + static_cast<int>(number)];
    square += static_cast<double>(one.x);
    moved_square += one.y;
  }

  const float2* squares_;
  int parts_;
  bool whole_;
};

constexpr int kRunVectors = 512;  // of a warp: 32 at a time

// Terms and maxima of product codes. The maxima of a warp's vectors are raised once for each of their lists.
__global__ void __launch_bounds__(kThreads)
    product_squares_kernel(const __grid_constant__ DeviceListsView lists,
                           const __grid_constant__ PreparedLists prepared) {
  extern __shared__ __align__(16) float2 squares[];
  const auto parts = static_cast<int>(lists.codec.format.parts);
  for (int i = static_cast<int>(threadIdx.x); i < parts * 128; i += kThreads) {
    vectors<uint4>(squares)[i] = vectors<uint4>(prepared.squares)[i];
  }
  __syncthreads();
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const SquareSums sums(lists, squares);
  const double scale = operand_scale(*prepared.largest);
  // By a warp. A vector is the centre plus codewords, rounded to f32, which moves it too.
  const auto write = [&](int64_t list, float square, float moved_square) {
    square = warp_largest(square);
    moved_square = warp_largest(moved_square);
    double origin = 0;
    if (lists.residual && lists.centres != nullptr) {
      for (int col = lane; col < cols; col += 32) {
        const double value = lists.centres[list * cols + col];
        origin = fma(value, value, origin);
      }
      origin = warp_sum(origin);
    }
    if (lane != 0) return;
    const double norm = sqrt(static_cast<double>(square)) * (1 + 0x1p-20);
    const double moved = sqrt(static_cast<double>(moved_square));
    const double stored = sqrt(origin) * scale + norm + moved;
    const double rounding = origin > 0 ? stored * 0x1p-24 * (1 + 0x1p-10) : 0.0;
    raise(&prepared.maxima[list].norm, static_cast<float>(norm));
    raise(&prepared.maxima[list].residual, static_cast<float>((moved + rounding) * (1 + 0x1p-20)));
  };
  const int64_t runs = (lists.count + kRunVectors - 1) / kRunVectors;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t run = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; run < runs; run += warps) {
    const int64_t begin = run * kRunVectors;
    const int64_t end = begin + kRunVectors < lists.count ? begin + kRunVectors : lists.count;
    int64_t list = list_between(lists.offsets, 0, lists.lists - 1, begin);
    int64_t list_end = lists.offsets[list + 1];
    float largest_square = 0;
    float largest_moved = 0;
    for (int64_t first = begin; first < end; first += 32) {
      const int64_t position = first + lane;
      const int64_t last = (first + 32 < end ? first + 32 : end) - 1;
      float square = 0;
      float moved_square = 0;
      if (position <= last) {
        double sum = 0;
        sums.look_up(lists.codes + position * parts, sum, moved_square);
        square = sum < HUGE_VAL ? __double2float_ru(sum) : HUGE_VALF;  // NaN counts as infinite
        if (!(moved_square < HUGE_VALF)) moved_square = HUGE_VALF;
        if (prepared.terms != nullptr) prepared.terms[position] = static_cast<float>(sum / 2);
      }
      int64_t from = first;
      for (;;) {  // once for each list of the 32
        const bool mine = position >= from && position < list_end && position <= last;
        largest_square = fmaxf(largest_square, mine ? square : 0.0f);
        largest_moved = fmaxf(largest_moved, mine ? moved_square : 0.0f);
        if (list_end > last) break;
        write(list, largest_square, largest_moved);
        largest_square = 0;
        largest_moved = 0;
        from = list_end;
        while (lists.offsets[list + 1] <= from) ++list;
        list_end = lists.offsets[list + 1];
      }
    }
    write(list, largest_square, largest_moved);
  }
}

// A thread for each vector, and for each list.
__global__ void __launch_bounds__(kThreads)
    segment_shape_kernel(const __grid_constant__ DeviceListsView lists, const __grid_constant__ PreparedLists prepared,
                         SegmentShape* shape) {
  constexpr float kShort = 0x1p-8f;  // as squares
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < lists.lists) {
    atomicMax(&shape->longest, static_cast<uint32_t>(lists.offsets[i + 1] - lists.offsets[i]));
  }
  bool is_short = false;
  if (i < lists.count && lists.key().has_distances()) {
    const float largest = prepared.maxima[list_between(lists.offsets, 0, lists.lists - 1, i)].norm;
    is_short = 2 * prepared.terms[i] < kShort * largest * largest;
  }
  const unsigned all = __ballot_sync(0xFFFFFFFFu, is_short);
  if (threadIdx.x % 32 == 0 && all != 0) atomicAdd(&shape->short_vectors, static_cast<uint32_t>(__popc(all)));
}

// The mean of the centres, used as their middle. One thread per column.
__global__ void __launch_bounds__(kLookupThreads)
    middle_kernel(const __grid_constant__ DeviceListsView lists, const float* largest, float* middle) {
  constexpr int64_t kMostCentres = 1024;
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const auto col = static_cast<int>(threadIdx.x);
  if (col >= cols) return;
  const int64_t count = lists.lists < kMostCentres ? lists.lists : kMostCentres;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; lists.has_origin() && i < count; ++i) {
    const float value = lists.centres[i * lists.lists / count * cols + col];
    if (!(fabsf(value) < 1e30f)) continue;
    sum += value;
    ++finite;
  }
  middle[col] = finite == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(finite) * operand_scale(*largest));
}

// Entries |w|^2 + 2 <c, w>, c minus the middle.
__global__ void __launch_bounds__(kLookupThreads)
    list_terms_kernel(const __grid_constant__ DeviceListsView lists, const __grid_constant__ PreparedLists prepared,
                      const __grid_constant__ ScanTerms terms) {
  extern __shared__ __align__(16) float tables[];
  __shared__ float centre[kLookupCols];
  const CodeFormat& format = lists.codec.format;
  const auto cols = static_cast<int>(format.cols);
  const auto thread = static_cast<int>(threadIdx.x);
  const float scale = operand_scale(*prepared.largest);
  for (int64_t list = blockIdx.x; list < lists.lists; list += gridDim.x) {
    const int64_t begin = lists.offsets[list];
    const int64_t end = lists.offsets[list + 1];
    if (begin == end && terms.tables == nullptr) continue;
    __syncthreads();  // the list before is done
    if (thread < cols) {
      const float own = lists.has_origin() ? lists.centres[list * cols + thread] : 0.0f;
      centre[thread] = fmaf(own, scale, -terms.middle[thread]);
    }
    __syncthreads();
    float* const out = terms.tables == nullptr ? tables : terms.tables + list * format.parts * 256;
    fill_lookup_tables(format, prepared.table, centre, out,
                       [](float sum, float c, float word) { return fmaf(word, fmaf(2.0f, c, word), sum); });
    if (terms.vectors == nullptr) continue;
    __syncthreads();
    for (int64_t position = begin + thread; position < end; position += kLookupThreads) {
      terms.vectors[position] = look_up(tables, lists.codes + position * format.parts, format.parts);
    }
  }
}

// Which codes repeat others.

constexpr int kCounters = 8192;
constexpr int kGroups = 1024;  // of equal codes; where more than these are large nothing is said of the others
constexpr int64_t kMostLength = int64_t{1} << 30;
constexpr uint32_t kNone = 0xFFFFFFFFu;

// The codes of one list, read by a block.
class ListCodes {
 public:
  __device__ ListCodes(const DeviceListsView& lists, int64_t list, int64_t code_bytes)
      : codes_(lists.codes + lists.offsets[list] * code_bytes),
        rows_(lists.rows + lists.offsets[list]),
        length_(lists.offsets[list + 1] - lists.offsets[list]),
        bytes_(static_cast<int>(code_bytes)),
        words_(code_bytes % 4 == 0 && reinterpret_cast<uintptr_t>(lists.codes) % 4 == 0),
        codec_(lists.codec),
        directions_(lists.kind == KeyKind::cosine && lists.codec.format.cols == 1 && !lists.residual) {}

  __device__ bool is_looked_at() const { return length_ >= int64_t{kLeastRepeats} && length_ <= kMostLength; }
  __device__ int length() const { return static_cast<int>(length_); }
  __device__ uint32_t row(int i) const { return rows_[i]; }

  __device__ uint32_t hash(int i) const {
    const uint8_t* const code = codes_ + static_cast<int64_t>(i) * bytes_;
    uint64_t sum = 0;
    if (directions_) {
      sum = direction(i) * 0x9E3779B97F4A7C15u;
      sum ^= sum >> 29;
    } else if (words_) {
      for (int word = 0; word < bytes_ / 4; ++word) {
        sum = (sum ^ vectors<uint32_t>(code)[word]) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 29;
      }
    } else {
      for (int byte = 0; byte < bytes_; ++byte) sum = (sum ^ code[byte]) * 0x9E3779B97F4A7C15u ^ sum >> 29;
    }
    return static_cast<uint32_t>(sum >> 32);
  }

  __device__ bool equal(int a, int b) const {
    if (directions_) return direction(a) == direction(b);
    const uint8_t* const left = codes_ + static_cast<int64_t>(a) * bytes_;
    const uint8_t* const right = codes_ + static_cast<int64_t>(b) * bytes_;
    if (words_) {
      for (int word = 0; word < bytes_ / 4; ++word) {
        if (vectors<uint32_t>(left)[word] != vectors<uint32_t>(right)[word]) return false;
      }
      return true;
    }
    for (int byte = 0; byte < bytes_; ++byte) {
      if (left[byte] != right[byte]) return false;
    }
    return true;
  }

 private:
  // For one column: the value that cosine's keys are made of (canonical.hpp), which is about 1 or -1, or 0.
  __device__ uint64_t direction(int i) const {
    const double value = decode_four(codec_, codes_ + static_cast<int64_t>(i) * bytes_, 0).values[0];
    return static_cast<uint64_t>(__double_as_longlong(value * canonical_inverse_norm(value * value)));
  }

  const uint8_t* codes_;
  const uint32_t* rows_;
  int64_t length_;
  int bytes_;
  bool words_;
  const CodecView& codec_;
  bool directions_;  // those that have the same are equal
};

// Fills the counters; returns the largest that this thread's codes meet. All threads.
__device__ uint32_t count_codes(const ListCodes& codes, uint32_t* counters) {
  for (int i = static_cast<int>(threadIdx.x); i < kCounters; i += kThreads) counters[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < codes.length(); i += kThreads) {
    atomicAdd(&counters[codes.hash(i) % kCounters], 1u);
  }
  __syncthreads();
  uint32_t most = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kCounters; i += kThreads) most = max(most, counters[i]);
  return most;
}

__global__ void __launch_bounds__(kThreads)
    count_repeats_kernel(const __grid_constant__ DeviceListsView lists, int64_t code_bytes, uint32_t* most) {
  __shared__ uint32_t counters[kCounters];
  const ListCodes codes(lists, blockIdx.x, code_bytes);
  if (!codes.is_looked_at()) return;
  const uint32_t mine = __reduce_max_sync(0xFFFFFFFFu, count_codes(codes, counters));
  if (threadIdx.x % 32 == 0) atomicMax(most, mine);
}

// The group of the code, or kNone where there is no place for another; by any threads at once.
__device__ uint32_t find_group(const ListCodes& codes, int i, uint32_t hash, uint32_t* firsts) {
  for (uint32_t step = 0; step < kGroups; ++step) {
    const uint32_t group = (hash / kCounters + step) % kGroups;
    const uint32_t other = atomicCAS(&firsts[group], kNone, static_cast<uint32_t>(i));
    if (other == kNone || codes.equal(static_cast<int>(other), i)) return group;
  }
  return kNone;
}

__global__ void __launch_bounds__(kThreads)
    rank_repeats_kernel(const __grid_constant__ DeviceListsView lists, int64_t code_bytes, uint16_t* ranks) {
  __shared__ uint32_t counters[kCounters];
  __shared__ uint32_t firsts[kGroups];   // a member of each group
  __shared__ uint32_t members[kGroups];  // so far
  __shared__ uint32_t groups[kThreads];
  const auto thread = static_cast<int>(threadIdx.x);
  const ListCodes codes(lists, blockIdx.x, code_bytes);
  if (!codes.is_looked_at()) return;
  if (!__syncthreads_or(count_codes(codes, counters) >= kLeastRepeats)) return;
  // Ranks are by the order of rows, which lists of an index have; for others nothing is said.
  bool ordered = true;
  for (int i = thread + 1; i < codes.length(); i += kThreads) ordered = ordered && codes.row(i - 1) < codes.row(i);
  if (!__syncthreads_and(ordered)) return;
  for (int i = thread; i < kGroups; i += kThreads) {
    firsts[i] = kNone;
    members[i] = 0;
  }
  __syncthreads();
  for (int first = 0; first < codes.length(); first += kThreads) {
    const int i = first + thread;
    uint32_t group = kNone;
    if (i < codes.length()) {
      const uint32_t hash = codes.hash(i);
      if (counters[hash % kCounters] >= kLeastRepeats) group = find_group(codes, i, hash, firsts);
    }
    groups[thread] = group;
    __syncthreads();
    uint32_t before = 0;
    if (group != kNone) {
      before = members[group];
      for (int other = 0; other < thread; ++other) before += groups[other] == group;
    }
    __syncthreads();
    if (group != kNone) {
      atomicAdd(&members[group], 1u);
      ranks[lists.offsets[blockIdx.x] + i] = static_cast<uint16_t>(min(before, 65535u));
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads)
    mask_repeats_kernel(const float* terms, const uint16_t* ranks, int64_t count, int64_t k, float* masked) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float term = terms == nullptr ? 0.0f : terms[i];
  masked[i] = ranks[i] >= k ? NAN : term;
}

}  // namespace

void launch_prepare_lists(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream) {
  launch_prepare_codewords(lists, prepared, stream);
  launch_prepare_vectors(lists, prepared, stream);
}

void launch_prepare_codewords(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream) {
  const CodeFormat& format = lists.codec.format;
  if (!format.copies_codewords()) return;
  constexpr int64_t kMostBlocks = 1024;
  const int64_t values = format.codewords() * format.cols;
  fill_bytes(prepared.largest, 0, sizeof(float), stream);
  launch(largest_kernel, Grid::of(std::min(divide_up(values, int64_t{kThreads}), kMostBlocks), kThreads), stream, lists,
         format.bytes(), prepared.largest);
  if (prepared.table != nullptr) {
    const int64_t halves = half_table_values(format);
    launch(table_kernel, Grid::over(halves, kThreads), stream, lists, halves, prepared.largest, prepared.table);
  }
  if (prepared.squares == nullptr) return;
  launch(codeword_squares_kernel, Grid::over(256 * format.parts, kThreads), stream, lists, prepared.largest,
         prepared.squares);
}

void launch_prepare_vectors(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream) {
  const CodeFormat& format = lists.codec.format;
  const int64_t blocks = divide_up(lists.count, kWarps * kWarpVectors);
  fill_bytes(prepared.maxima, 0, array_bytes<ListMaxima>(lists.lists), stream);
  if (!format.copies_codewords()) {
    fill_bytes(prepared.largest, 0, sizeof(float), stream);
    launch(largest_kernel, Grid::of(blocks, kThreads), stream, lists, format.bytes(), prepared.largest);
  }
  if (prepared.squares != nullptr) {
    constexpr int64_t kMostBlocks = 1024;  // each has its copy of the squares
    const int64_t runs = divide_up(lists.count, int64_t{kWarps} * kRunVectors);
    allow_all_shared_memory(product_squares_kernel);
    launch(product_squares_kernel,
           Grid::of(std::min(runs, kMostBlocks), kThreads).with_shared(2 * array_bytes<float>(256 * format.parts)),
           stream, lists, prepared);
  } else {
    launch(maxima_kernel, Grid::of(blocks, kThreads), stream, lists, format.bytes(), prepared);
  }
  if (prepared.inverse_norms == nullptr) return;
  launch_inspect_rows({lists.codes, format.dtype, format.cols, lists.count}, format.cols,
                      {.inverse_norms = prepared.inverse_norms}, stream);
}

void launch_row_terms(const DeviceListsView& lists, const PreparedLists& prepared, cudaStream_t stream) {
  if (prepared.upper_terms == nullptr) return;
  launch(maxima_kernel, Grid::of(divide_up(lists.count, kWarps * kWarpVectors), kThreads), stream, lists,
         lists.codec.format.bytes(), prepared);
}

void launch_segment_shape(const DeviceListsView& lists, const PreparedLists& prepared, SegmentShape* shape,
                          cudaStream_t stream) {
  fill_bytes(shape, 0, sizeof(SegmentShape), stream);
  launch(segment_shape_kernel, Grid::over(std::max(lists.count, lists.lists), kThreads), stream, lists, prepared,
         shape);
}

void launch_scan_terms(const DeviceListsView& lists, const PreparedLists& prepared, const ScanTerms& terms,
                       cudaStream_t stream) {
  if (terms.term == ScanTerm::none) return;
  launch(middle_kernel, Grid::of(1, kLookupThreads), stream, lists, prepared.largest, terms.middle);
  constexpr int64_t kMostBlocks = 1 << 16;
  const int64_t shared = terms.tables == nullptr ? lists.codec.format.parts * 256 * 4 : 0;
  allow_all_shared_memory(list_terms_kernel);
  launch(list_terms_kernel, Grid::of(std::min(lists.lists, kMostBlocks), kLookupThreads).with_shared(shared), stream,
         lists, prepared, terms);
}

void launch_count_repeats(const DeviceListsView& lists, uint32_t* most, cudaStream_t stream) {
  if (lists.count == 0) return;
  launch(count_repeats_kernel, Grid::of(lists.lists, kThreads), stream, lists, lists.codec.format.bytes(), most);
}

void launch_rank_repeats(const DeviceListsView& lists, uint16_t* ranks, cudaStream_t stream) {
  if (lists.count == 0) return;
  fill_bytes(ranks, 0, array_bytes<uint16_t>(lists.count), stream);
  launch(rank_repeats_kernel, Grid::of(lists.lists, kThreads), stream, lists, lists.codec.format.bytes(), ranks);
}

void launch_mask_repeats(const float* terms, const uint16_t* ranks, int64_t count, int64_t k, float* masked,
                         cudaStream_t stream) {
  launch(mask_repeats_kernel, Grid::over(count, kThreads), stream, terms, ranks, count, k, masked);
}

}  // namespace kith
