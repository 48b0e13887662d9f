// What other libraries take on an NVIDIA H200, in milliseconds: FAISS 1.15 (its native GPU path) and cuVS 26.10,
// measured there in 2026-10 with data on the device; 0 where there is no figure. 1,000,000 x 128 vectors, 10,000
// queries unless the name says otherwise.
#pragma once

#include <string_view>

struct PeerTimes {
  std::string_view name;
  double faiss;
  double cuvs;
  double goal;  // Kith's
};

inline constexpr PeerTimes kExactPeers[] = {
    {"f32 k=10", 104, 222, 12},
    {"f32 k=100", 107, 135, 15},
    {"f32 k=1000", 213, 807, 30},
    {"u8 k=10", 0, 0, 4},
    {"u8 k=100", 0, 0, 0},
    {"u8 k=1000", 0, 0, 0},
    {"f16 k=10", 133, 296, 8},
    {"f32 far mean k=10", 0, 0, 25},
    {"f32 cosine k=10", 0, 0, 0},
    {"f32 1 query index", 0, 0.89, 0.2},
    {"f32 graph k=10", 10300, 17400, 1200},
    {"u8 graph k=10", 0, 0, 500},
};

// k-means, data on the device, in milliseconds for all iterations; 0 where there is no figure.
struct KMeansPeerTimes {
  std::string_view name;
  double faiss;  // its data on the host
  double cuvs;
  double goal;
};

inline constexpr KMeansPeerTimes kKMeansPeers[] = {
    {"1M x 128 f32 -> 4096", 3900, 590, 150},
    {"8.1M x 784 f32 -> 256", 0, 2000, 400},
    {"8.1M x 784 f32 -> 4096", 0, 22100, 4000},
};
