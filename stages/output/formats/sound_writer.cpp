#include "stages/output/formats/sound_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "stages/files/publication.h"

namespace melflow {
namespace {

constexpr std::int64_t kChunk = 16'384;  // samples converted at a time

SF_INFO info_of(const SoundEncoding& kind, int sample_rate) {
  SF_INFO info{};
  info.channels = 1;
  info.samplerate = sample_rate;
  info.format = (kind.format == SoundFormat::wav ? SF_FORMAT_WAV : SF_FORMAT_FLAC) |
                (kind.type == StoredSample::int16   ? SF_FORMAT_PCM_16
                 : kind.type == StoredSample::int24 ? SF_FORMAT_PCM_24
                                                    : SF_FORMAT_FLOAT);
  return info;
}

}  // namespace

std::string SoundEncoding::refused(int sample_rate) const {
  constexpr int kMostOfFlac = 655'350;  // [Hz], the most that its header can hold
  if (format == SoundFormat::flac && sample_rate > kMostOfFlac)
    return fmt::format(
        "is sampled at {} Hz, and a FLAC file at no more than {}; write WAV, or put a "
        "resample stage before this node",
        sample_rate, kMostOfFlac);
  const SF_INFO info = info_of(*this, sample_rate);
  return sf_format_check(&info) != 0
             ? ""
             : fmt::format("is sampled at {} Hz, which libsndfile does not write", sample_rate);
}

// Makes libsndfile write through the part file.
SF_VIRTUAL_IO SoundWriter::calls() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* self) {
    return static_cast<sf_count_t>(static_cast<SoundWriter*>(self)->size_);
  };
  io.seek = [](sf_count_t offset, int whence, void* self) {
    auto& w = *static_cast<SoundWriter*>(self);
    const std::uint64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? w.at_ : w.size_;
    w.at_ = base + static_cast<std::uint64_t>(offset);
    return static_cast<sf_count_t>(w.at_);
  };
  io.read = [](void*, sf_count_t, void*) { return sf_count_t{0}; };  // nothing is read back
  io.write = [](const void* data, sf_count_t bytes, void* self) {
    auto& w = *static_cast<SoundWriter*>(self);
    if (w.error_) return sf_count_t{0};
    try {
      w.write_at_place(data, static_cast<std::uint64_t>(bytes));
    } catch (...) {  // exceptions must not pass through C
      w.error_ = std::current_exception();
      return sf_count_t{0};
    }
    return bytes;
  };
  io.tell = [](void* self) {
    return static_cast<sf_count_t>(static_cast<SoundWriter*>(self)->at_);
  };
  return io;
}

void SoundWriter::write_at_place(const void* data, std::uint64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  const std::uint64_t in_head = at_ < sizeof head_ ? std::min(bytes, sizeof head_ - at_) : 0;
  std::memcpy(head_ + std::min<std::uint64_t>(at_, sizeof head_), from, in_head);
  if (bytes > in_head) file_.put(from + in_head, bytes - in_head, at_ + in_head);
  at_ += bytes;
  size_ = std::max(size_, at_);
}

SoundWriter::SoundWriter(const std::string& target, const std::string& stage, Existing existing,
                         const SoundEncoding& kind, int sample_rate)
    : file_(target, stage, existing), kind_(kind) {
  SF_VIRTUAL_IO io = calls();
  SF_INFO info = info_of(kind, sample_rate);
  sound_.reset(sf_open_virtual(&io, SFM_WRITE, &info, this));
  check();
  if (!sound_)
    throw RunError(fmt::format("{}: libsndfile does not write this kind of file", target));
  // The peak chunk would contain the time of day.
  sf_command(sound_.get(), SFC_SET_ADD_PEAK_CHUNK, nullptr, SF_FALSE);
}

SoundWriter::~SoundWriter() = default;

void SoundWriter::check() {
  if (error_) std::rethrow_exception(error_);
}

template <class Stored>
void SoundWriter::put(const std::vector<Stored>& stored) {
  const auto count = static_cast<sf_count_t>(stored.size());
  sf_count_t done = 0;
  if constexpr (std::is_same_v<Stored, short>)
    done = sf_write_short(sound_.get(), stored.data(), count);
  else if constexpr (std::is_same_v<Stored, int>)
    done = sf_write_int(sound_.get(), stored.data(), count);
  else
    done = sf_write_float(sound_.get(), stored.data(), count);
  check();
  if (done != count)
    throw RunError(
        fmt::format("{}: cannot be written: {}", file_.part_path(), sf_strerror(sound_.get())));
}

// Stores samples as integers of `bits` bits in the upper ones of Stored, or as floats.
template <class Stored>
void SoundWriter::put_as(const Samples& samples, int bits) {
  std::vector<Stored> stored;
  for (std::int64_t at = 0; at < samples.count; at += kChunk) {
    const std::int64_t n = std::min(kChunk, samples.count - at);
    stored.resize(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      Stored& out = stored[static_cast<std::size_t>(i)];
      if (samples.type == SampleType::int16) {
        std::int16_t in = 0;
        std::memcpy(&in, samples.data + (at + i) * 2, sizeof in);
        if constexpr (std::is_same_v<Stored, float>)
          out = static_cast<float>(in) / 32768.0F;
        else
          out = static_cast<Stored>(in * (1 << (8 * sizeof(Stored) - 16)));
        continue;
      }
      float in = 0;
      std::memcpy(&in, samples.data + (at + i) * 4, sizeof in);
      if constexpr (std::is_same_v<Stored, float>) {
        out = in;
      } else {
        const double full = 1 << (bits - 1);
        const double whole = std::nearbyint(static_cast<double>(in) * full);
        clipped_ += whole < -full || whole > full - 1 ? 1 : 0;
        out = static_cast<Stored>(static_cast<int>(std::clamp(whole, -full, full - 1)) *
                                  (1 << (8 * static_cast<int>(sizeof(Stored)) - bits)));
      }
    }
    put(stored);
  }
}

std::optional<ItemError> SoundWriter::add(const Samples& samples) {
  const std::uint64_t width = kind_.type == StoredSample::int16   ? 2
                              : kind_.type == StoredSample::int24 ? 3
                                                                  : 4;
  sample_bytes_ += static_cast<std::uint64_t>(samples.count) * width;
  if (kind_.format == SoundFormat::wav && sample_bytes_ > kind_.most_bytes)
    return ItemError::failed(
        fmt::format("is longer than a WAV file may be: more than {} bytes of samples; write "
                    "format: flac, or shorter pieces",
                    kind_.most_bytes));
  if (kind_.type == StoredSample::int16)
    put_as<short>(samples, 16);
  else if (kind_.type == StoredSample::int24)
    put_as<int>(samples, 24);
  else
    put_as<float>(samples, 32);
  return std::nullopt;
}

std::optional<ItemError> SoundWriter::add_silence(std::int64_t count) {
  const std::vector<std::int16_t> zeros(static_cast<std::size_t>(std::min(count, kChunk)));
  for (; count > 0; count -= kChunk)
    if (auto error = add({nullptr, reinterpret_cast<const std::byte*>(zeros.data()),
                          std::min(count, kChunk), SampleType::int16}))
      return error;
  return std::nullopt;
}

void SoundWriter::publish(bool sync) {
  sound_.reset();  // which completes the header
  check();
  file_.put(head_, sizeof head_, 0);
  PartFile* const only = &file_;
  Publication::publish(file_.target(), {&only, 1}, sync);
}

}  // namespace melflow
