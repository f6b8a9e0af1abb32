#include "stages/audio/declared_length.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr std::string_view kBegin = "its list says that it is ";

class Compared final : public Expand<RawBytes, Waveform>::Cursor {
 public:
  Compared(std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks, double declared)
      : blocks_(std::move(blocks)), declared_(declared) {}

  Result<Expand<RawBytes, Waveform>::Block> next(ItemContext& context) override {
    constexpr double kTolerance = 0.025;  // [s]
    auto block = blocks_->next(context);
    if (!block || block->more) return block;
    const FileAudio& file = block->out->file;
    const double seconds = static_cast<double>(file.frames) / file.sample_rate;
    if (std::abs(seconds - declared_) > kTolerance)
      context.warn(fmt::format("{}{:.3f} s long, and it is {:.3f} s: another version of the file?",
                               kBegin, declared_, seconds));
    return block;
  }

 private:
  std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks_;
  double declared_;
};

}  // namespace

std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> with_declared_length(
    std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks, double declared) {
  return std::make_unique<Compared>(std::move(blocks), declared);
}

double declared_length_in(std::string_view warning) {
  double out = 0;
  const std::size_t at = warning.find(kBegin);
  if (at == warning.npos) return out;
  warning.remove_prefix(at + kBegin.size());
  std::from_chars(warning.data(), warning.data() + warning.size(), out);
  return out;
}

}  // namespace melflow
