// Feeds any order of calls of melflow.h, with any arguments, for libFuzzer (long/fuzz.sh): the
// first bytes choose settings, each of the others a call. Rows of a stream are those of the whole
// recording, whatever was called between.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "apps/c/melflow.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow::fuzz;

constexpr const char* kPresets[] = {
    "kaldi",    "whisper",        "hifigan",      "speechbrain_mfcc",
    "nemo",     "kaldi_voxceleb", "funasr_lfr76", "vggish",
    "seamless", "none",           "dac",          ""};

// What a stream was given, to compare its rows with.
struct Given {
  std::vector<float> samples, rows;
  bool is_odd = false;     // has a sample whose rows may not be finite
  bool has_ended = false;  // finished or failed
};

void compare(const melflow_front* front, const Given& given) {
  const std::int64_t count = std::ssize(given.samples), room = melflow_front_rows(front, count);
  std::vector<float> rows(static_cast<std::size_t>(room * melflow_front_columns(front)) + 1);
  std::int64_t made = 0;
  require(melflow_compute(front, given.samples.data(), count, rows.data(), room, &made) ==
          MELFLOW_OK);
  require(made == room);
  rows.pop_back();
  require(rows.size() == given.rows.size());
  require(rows.empty() ||
          std::memcmp(rows.data(), given.rows.data(), rows.size() * sizeof(float)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& write) {
    for (unsigned preset = 0; preset < std::size(kPresets); ++preset)
      for (unsigned flags = 0; flags < 2; ++flags) {
        const unsigned char bytes[] = {static_cast<unsigned char>(preset),
                                       0,
                                       static_cast<unsigned char>(160 + flags),
                                       0x81,
                                       0xF9,
                                       0x42,
                                       0xFC,
                                       0x39,
                                       0xF8,
                                       0xFD,
                                       0x81,
                                       0xFE,
                                       0xF9,
                                       0x87,
                                       0xFD};
        write(std::to_string(preset) + "_" + std::to_string(flags),
              {reinterpret_cast<const char*>(bytes), sizeof bytes});
      }
    write("lists", "\xff{\"stages\": [[null], {\"stage\": \"mel\"}, 1], \"stages\": []}");
    write("before",
          "\xff{\"stages\": [{\"stage\": \"decode\", \"fit\": null}, {\"stage\": \"resample\", "
          "\"rate\": 16000}, {\"stage\": \"segment\", \"length\": 9000, \"hop\": 9000, \"tail\": "
          "\"pad\"}, {\"stage\": \"mel\"}]}");
    write("json",
          "\xff{\"stages\": [{\"stage\": \"mel\", \"n_fft\": 400, \"norm_mean\": [1, 2]}, "
          "{\"stage\": \"stack\", \"frames\": 3}, {\"stage\": \"pcen\"}]}");
  });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  melflow_front* front = nullptr;
  const auto* text = reinterpret_cast<const char*>(data + 1);
  if (data[0] == 255) {  // the rest is JSON
    if (melflow_front_from_json(text, size - 1, 0, &front) == MELFLOW_OK) {
      require(melflow_front_columns(front) > 0);
      const std::vector<float> silence(3000);
      const std::int64_t rows = melflow_front_rows(front, std::ssize(silence));
      std::int64_t made = 0;
      constexpr std::int64_t kMost = 1 << 22;  // values
      std::vector<float> space;
      if (rows >= 0 && rows < kMost / melflow_front_columns(front))
        space.resize(static_cast<std::size_t>(rows * melflow_front_columns(front)) + 1);
      const melflow_status status = melflow_compute(front, silence.data(), std::ssize(silence),
                                                    space.data(), space.empty() ? 0 : rows, &made);
      require(status == MELFLOW_OK || *melflow_error() != '\0');
      melflow_front_destroy(front);
    } else {
      require(front == nullptr && *melflow_error() != '\0');
    }
    return 0;
  }
  const char* preset = kPresets[data[0] % std::size(kPresets)];
  const int rates[] = {0, 16000, 8000, -1, 22050, 1 << 30};
  if (melflow_front_from_preset(preset, rates[data[1] % std::size(rates)], &front) != MELFLOW_OK) {
    require(front == nullptr && *melflow_error() != '\0');
    return 0;
  }
  const auto columns = static_cast<std::size_t>(melflow_front_columns(front));
  melflow_stream* stream = nullptr;
  Given given;
  const auto flags = data[2] % 2 == 0 ? MELFLOW_FINISH_ONLY : data[2] % 16 == 3 ? 8u : 0u;
  if (melflow_stream_create(front, data[2], flags, &stream) != MELFLOW_OK) {
    require(stream == nullptr);
    melflow_front_destroy(front);
    return 0;
  }
  std::uint32_t noise = 1;
  std::vector<float> samples;
  std::vector<std::int16_t> integers;
  const auto pull = [&](std::int64_t most) {
    std::vector<float> rows(static_cast<std::size_t>(most) * columns + 1);
    std::int64_t made = -1;
    require(melflow_stream_pull(stream, rows.data(), most, &made) == MELFLOW_OK);
    require(made >= 0 && made <= most);
    given.rows.insert(given.rows.end(), rows.begin(),
                      rows.begin() + made * static_cast<std::int64_t>(columns));
  };
  // Checks the status of a push; returns whether the samples were taken.
  const auto took = [&](melflow_status status) {
    require(given.has_ended
                ? status == MELFLOW_ENDED
                : status == MELFLOW_OK || (given.is_odd && status == MELFLOW_BAD_AUDIO));
    given.has_ended = given.has_ended || status != MELFLOW_OK;
    return status == MELFLOW_OK;
  };
  for (std::size_t i = 3; i < size; ++i) {
    const int call = data[i] % 8;
    const std::size_t count = std::size_t{data[i]} / 8 * 40;
    if (call < 4) {
      samples.clear();
      integers.clear();
      for (std::size_t s = 0; s < count; ++s) {
        noise = noise * 1664525 + 1013904223;
        integers.push_back(static_cast<std::int16_t>(noise >> 16));
        samples.push_back(static_cast<float>(integers.back()) / 32768.0F);
      }
      if (call == 3 && count > 0) samples[0] = 1e38F;
      given.is_odd = given.is_odd || (call == 3 && count > 0);
      const auto n = static_cast<std::int64_t>(count);
      took(call == 0 ? melflow_stream_push_int16(stream, integers.data(), n)
                     : melflow_stream_push(stream, samples.data(), n));
      given.samples.insert(given.samples.end(), samples.begin(), samples.end());
    } else if (call == 4) {
      pull(static_cast<std::int64_t>(count) / 40);
    } else if (call == 5 && count > 1000) {
      const bool is_first = !given.has_ended;
      if (took(melflow_stream_finish(stream)) && is_first) {
        pull(melflow_stream_waiting(stream));
        if (!given.is_odd) compare(front, given);
      }
      given.has_ended = true;
    } else if (call == 6 && count > 1000) {
      require(melflow_stream_reset(stream) == MELFLOW_OK);
      given = {};
    } else if (call == 7) {
      require(melflow_stream_push(stream, nullptr, 3) == MELFLOW_BAD_ARGUMENT);
      require(melflow_stream_pull(stream, nullptr, 3, nullptr) == MELFLOW_BAD_ARGUMENT);
    }
  }
  melflow_stream_destroy(stream);
  melflow_front_destroy(front);
  return 0;
}
