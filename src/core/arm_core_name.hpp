// Names of ARM cores by implementer and part number, which /proc/cpuinfo shows as the MIDR register has them. The names
// are ARM's, from the tables of Linux (arch/arm64/include/asm/cputype.h) and of util-linux' lscpu.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

namespace arm_core {

// The number behind a line's name, "CPU part\t: 0xd40"; -1 where there is no such line.
inline int number_of(std::string_view cpuinfo, std::string_view name) {
  const size_t line = cpuinfo.find(name);
  if (line == std::string_view::npos) return -1;
  const std::string_view rest = cpuinfo.substr(line, cpuinfo.find('\n', line) - line);
  const size_t digits = rest.find("0x");
  if (digits == std::string_view::npos) return -1;
  int number = -1;
  std::from_chars(rest.data() + digits + 2, rest.data() + rest.size(), number, 16);
  return number;
}

struct Core {
  uint8_t maker;
  uint16_t part;
  std::string_view name;
};

inline constexpr Core kCores[] = {
    {0x41, 0xd03, "ARM Cortex-A53"},      {0x41, 0xd05, "ARM Cortex-A55"},     {0x41, 0xd07, "ARM Cortex-A57"},
    {0x41, 0xd08, "ARM Cortex-A72"},      {0x41, 0xd09, "ARM Cortex-A73"},     {0x41, 0xd0a, "ARM Cortex-A75"},
    {0x41, 0xd0b, "ARM Cortex-A76"},      {0x41, 0xd0c, "ARM Neoverse N1"},    {0x41, 0xd40, "ARM Neoverse V1"},
    {0x41, 0xd41, "ARM Cortex-A78"},      {0x41, 0xd44, "ARM Cortex-X1"},      {0x41, 0xd46, "ARM Cortex-A510"},
    {0x41, 0xd47, "ARM Cortex-A710"},     {0x41, 0xd48, "ARM Cortex-X2"},      {0x41, 0xd49, "ARM Neoverse N2"},
    {0x41, 0xd4a, "ARM Neoverse E1"},     {0x41, 0xd4d, "ARM Cortex-A715"},    {0x41, 0xd4e, "ARM Cortex-X3"},
    {0x41, 0xd4f, "ARM Neoverse V2"},     {0x41, 0xd80, "ARM Cortex-A520"},    {0x41, 0xd81, "ARM Cortex-A720"},
    {0x41, 0xd82, "ARM Cortex-X4"},       {0x41, 0xd84, "ARM Neoverse V3"},    {0x41, 0xd85, "ARM Cortex-X925"},
    {0x41, 0xd8e, "ARM Neoverse N3"},     {0x46, 0x001, "Fujitsu A64FX"},      {0x48, 0xd01, "HiSilicon Kunpeng 920"},
    {0x4e, 0x004, "NVIDIA Carmel"},       {0x51, 0x001, "Qualcomm Oryon"},     {0x61, 0x022, "Apple M1 (Icestorm)"},
    {0x61, 0x023, "Apple M1 (Firestorm)"}, {0xc0, 0xac3, "Ampere-1"},          {0xc0, 0xac4, "Ampere-1a"},
};

}  // namespace arm_core

// "ARM Neoverse V1"; the two numbers for a core that is not listed; empty if the text has none. Where cores differ, the
// first core is named.
inline std::string arm_core_name(std::string_view cpuinfo) {
  const int maker = arm_core::number_of(cpuinfo, "CPU implementer");
  const int part = arm_core::number_of(cpuinfo, "CPU part");
  if (maker < 0 || part < 0) return "";
  for (const arm_core::Core& core : arm_core::kCores) {
    if (core.maker == maker && core.part == part) return std::string(core.name);
  }
  char text[48];
  char* to = text;
  const auto put = [&](std::string_view words, int number) {
    to = words.copy(to, words.size()) + to;
    to = std::to_chars(to, text + sizeof(text), number, 16).ptr;
  };
  put("ARM core 0x", maker);
  put(" part 0x", part);
  return {text, to};
}

}  // namespace kith
