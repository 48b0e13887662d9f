// One line on the terminal that says how far a command is, how fast, and how long it will take. It is drawn on stderr,
// so that stdout holds results alone, is no wider than the terminal is at that moment, and is gone when the command
// ends. A terminal that knows no control sequences (TERM=dumb) gets a plain line for every tenth instead.
#pragma once

#include <kith/progress.hpp>

#include "pace.hpp"

#include <chrono>
#include <string>

namespace kith::cli {

class ProgressBar {
 public:
  // Draws nothing where `wanted` is false or stderr is no terminal.
  explicit ProgressBar(bool wanted);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool enabled() const { return enabled_; }
  void show(const Progress& progress);
  void clear();

 private:
  void show_plain(double share, bool begins);

  bool enabled_;
  bool plain_;
  bool drawn_ = false;
  int tenth_ = 0;  // the last that was told
  std::string stage_;
  std::chrono::steady_clock::time_point begin_;
  Pace pace_;
};

}  // namespace kith::cli
