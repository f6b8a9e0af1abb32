#include <sndfile.h>

#include <algorithm>

#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {
namespace {

struct Closer {
  void operator()(SNDFILE* handle) const { sf_close(handle); }
};

class SndfileDecoder final : public SoundDecoder {
 public:
  explicit SndfileDecoder(SoundInput& input) {
    static SF_VIRTUAL_IO io = {
        [](void* user) { return static_cast<sf_count_t>(static_cast<SoundInput*>(user)->size()); },
        [](sf_count_t offset, int whence, void* user) -> sf_count_t {
          auto& in = *static_cast<SoundInput*>(user);
          const auto base = whence == SEEK_CUR   ? static_cast<sf_count_t>(in.at())
                            : whence == SEEK_END ? static_cast<sf_count_t>(in.size())
                                                 : 0;
          sf_count_t to = 0;
          if (__builtin_add_overflow(base, offset, &to) || to < 0) return -1;
          in.seek(static_cast<std::uint64_t>(to));
          return to;
        },
        [](void* out, sf_count_t count, void* user) {
          return static_cast<sf_count_t>(static_cast<SoundInput*>(user)->read(
              {static_cast<std::byte*>(out), static_cast<std::size_t>(count)}));
        },
        nullptr,
        [](void* user) { return static_cast<sf_count_t>(static_cast<SoundInput*>(user)->at()); },
    };
    handle_.reset(sf_open_virtual(&io, SFM_READ, &info_, &input));
  }
  [[nodiscard]] bool is_open() const { return handle_ != nullptr; }

  std::int64_t read(short* out, std::int64_t frames) override {
    return noted(sf_readf_short(handle_.get(), out, frames));
  }
  std::int64_t read(float* out, std::int64_t frames) override {
    return noted(sf_readf_float(handle_.get(), out, frames));
  }

  [[nodiscard]] std::optional<Fault> fault() const override { return fault_; }

 private:
  // libsndfile forgets an error with the next call.
  std::int64_t noted(std::int64_t n) {
    n = std::max<std::int64_t>(n, 0);
    count_ += n;
    if (!fault_ && sf_error(handle_.get()) != SF_ERR_NO_ERROR)
      fault_ = Fault{count_, sf_strerror(handle_.get()), false};
    return n;
  }

  std::unique_ptr<SNDFILE, Closer> handle_;
  std::int64_t count_ = 0;
  std::optional<Fault> fault_;
};

}  // namespace

bool is_narrow(const SF_INFO& info) {
  const int subtype = info.format & SF_FORMAT_SUBMASK;
  return subtype == SF_FORMAT_PCM_16 || subtype == SF_FORMAT_PCM_S8 ||
         subtype == SF_FORMAT_PCM_U8 || subtype == SF_FORMAT_ULAW || subtype == SF_FORMAT_ALAW;
}

// libsndfile keeps the reason of a refusal in one place for all threads, so it is not to be had.
OpenedSound open_sndfile(SoundInput& input) {
  auto out = std::make_unique<SndfileDecoder>(input);
  if (!out->is_open()) return std::string();
  return OpenedSound(std::move(out));
}

}  // namespace melflow
