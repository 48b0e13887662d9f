// Processor features beyond Highway's targets. Plain data, so that a plan can be made for any processor.
#pragma once

namespace kith {

struct CpuExtensions {
  bool dotprod = false;  // NEON with dot products of bytes
  bool vnni = false;     // AVX-512 with dot products of bytes
  bool amx = false;      // tiles: matrix products of bytes and of bf16
  bool vbmi = false;     // AVX-512 that looks bytes up in registers; with vnni
  bool vpopcnt = false;  // AVX-512 that counts the bits of a vector's words, beside VNNI
  bool mmla = false;     // NEON with matrix products of bytes and of bf16; with dotprod
  bool avx2 = false;     // Highway's target is AVX2 or better; products of bytes that would saturate beyond 15 bits
};

}  // namespace kith
