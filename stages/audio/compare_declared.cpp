#include "stages/audio/compare_declared.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr std::string_view kLength = "its list says that it is ",
                           kRate = "its list says that its rate is ";

class Compared final : public Expand<RawBytes, Waveform>::Cursor {
 public:
  Compared(std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks,
           std::vector<DeclaredAudio> declared, bool is_cut)
      : blocks_(std::move(blocks)), declared_(std::move(declared)), is_cut_(is_cut) {}

  Result<Expand<RawBytes, Waveform>::Block> next(ItemContext& context) override {
    auto block = blocks_->next(context);
    if (block && !block->more) compare(block->out->file, context);
    return block;
  }

 private:
  // Warns of the first entry that says something else: they are of one file.
  void compare(const FileAudio& file, ItemContext& context) const {
    constexpr double kTolerance = 0.025;  // [s]
    const double seconds = static_cast<double>(file.frames) / file.sample_rate;
    const auto other_length =
        std::find_if(declared_.begin(), declared_.end(), [&](const DeclaredAudio& d) {
          return !is_cut_ && d.seconds > 0 && std::abs(seconds - d.seconds) > kTolerance;
        });
    if (other_length != declared_.end())
      context.warn(fmt::format("{}{:.3f} s long, and it is {:.3f} s: another version of the file?",
                               kLength, other_length->seconds, seconds));
    const auto other_rate = std::find_if(
        declared_.begin(), declared_.end(),
        [&](const DeclaredAudio& d) { return d.rate > 0 && d.rate != file.sample_rate; });
    if (other_rate != declared_.end())
      context.warn(
          fmt::format("{}{} Hz, and the file's is {} Hz, which is used: another version of the "
                      "file?",
                      kRate, other_rate->rate, file.sample_rate));
  }

  std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks_;
  std::vector<DeclaredAudio> declared_;
  bool is_cut_;
};

double number_behind(std::string_view begin, std::string_view warning) {
  double out = 0;
  const std::size_t at = warning.find(begin);
  if (at == warning.npos) return out;
  warning.remove_prefix(at + begin.size());
  std::from_chars(warning.data(), warning.data() + warning.size(), out);
  return out;
}

}  // namespace

std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> with_declared(
    std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks, std::vector<DeclaredAudio> declared,
    bool is_cut) {
  return std::make_unique<Compared>(std::move(blocks), std::move(declared), is_cut);
}

DeclaredAudio declared_in(std::string_view warning) {
  return {number_behind(kLength, warning), number_behind(kRate, warning)};
}

}  // namespace melflow
