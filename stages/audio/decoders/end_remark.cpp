#include "stages/audio/decoders/end_remark.h"

#include <fmt/format.h>

#include "stages/audio/decoders/container_end.h"
#include "stages/audio/decoders/ogg_pages.h"

namespace melflow {

std::string end_remark(const EndedRecording& recording, const SampleReader& reader,
                       const ReadAt& bytes, std::uint64_t size) {
  const SF_INFO& info = recording.info;
  const auto seconds = [&info](std::int64_t frames) {
    return static_cast<double>(frames) / info.samplerate;
  };
  const std::int64_t decoded = reader.count();
  // Encoders of MP3 do not agree whether the frame with the count counts. A frame of a low rate is
  // half as long.
  const bool is_mp3 = (info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG;
  const std::int64_t slack = !is_mp3 ? 0 : info.samplerate < 32000 ? 2 * 576 : 2 * 1152;
  const bool is_short =
      recording.is_over && recording.is_count_known && decoded + slack < info.frames;
  if (const auto fault = reader.fault()) {
    std::string remark =
        fmt::format("{} after {:.3f} s: {}", fault->is_change ? "changes" : "damaged",
                    seconds(fault->after), fault->what);
    if (is_short && !fault->is_change)
      remark += fmt::format(", {} of {} samples are missing", info.frames - decoded, info.frames);
    return remark;
  }
  if (!recording.is_over) return "";
  std::string remark = ogg_remark(bytes, size, decoded, info.samplerate);
  if (remark.empty() && is_short)
    remark =
        fmt::format("short: the header promises {} samples ({:.3f} s), there are {} ({:.3f} s)",
                    info.frames, seconds(info.frames), decoded, seconds(decoded));
  if (!remark.empty()) return remark;
  remark = cut_off_remark(bytes, size);
  // It counts in bytes; the message adds the duration.
  return remark.starts_with("short: ")
             ? fmt::format("{}; {} samples ({:.3f} s) are there", remark, decoded, seconds(decoded))
             : remark;
}

}  // namespace melflow
