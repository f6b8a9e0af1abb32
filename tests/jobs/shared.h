// Pipelines that several of these tests run, as a user would write them.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

/// Settings of a run that do not change its result.
struct Knobs {
  int concurrency = 2;
  int queue = 4;
  int batch = 8;
  std::string memory = "256MiB";
  std::string block = "2MiB";
  std::string whole = "4MiB";
  std::string engine = "inline";
  int workers = 2;

  [[nodiscard]] std::string text() const {
    return "concurrency " + std::to_string(concurrency) + ", queue " + std::to_string(queue) +
           ", batch " + std::to_string(batch) + ", memory " + memory + ", block " + block +
           ", whole " + whole + ", engine " + engine + ", workers " + std::to_string(workers);
  }
};

/// `segment` and `mel`: further options of these stages, such as ", length: 4000"; `after_mel`:
/// stages between mel and the output, such as "stage: mfcc".
inline std::string speech_pipeline(const Knobs& k, const std::string& segment = "",
                                   const std::string& mel = "", const std::string& top = "",
                                   const std::vector<std::string>& after_mel = {}) {
  const std::string bounds = ", concurrency: " + std::to_string(k.concurrency) +
                             ", queue: " + std::to_string(k.queue) + "}\n";
  std::string last = "mel", nodes;
  for (const std::string& stage : after_mel) {
    const std::string name = "after_" + last;
    nodes += fmt::format("  {}: {{{}, from: {}{}", name, stage, last, bounds);
    last = name;
  }
  return "version: 1\nworkers: " + std::to_string(k.workers) + "\nmemory: {host: " + k.memory +
         "}\n" + top +
         "graph:\n"
         "  files: {stage: file_list, root: \"${DATA}\", include: [\"**/*\"], labels: parent_dir}\n"
         "  read: {stage: disk_read, from: files, whole: " +
         k.whole + ", engine: " + k.engine + bounds +
         "  decode: {stage: decode, from: read, block: " + k.block + bounds +
         "  resample: {stage: resample, from: decode, rate: 16000" + bounds +
         "  segment: {stage: segment, from: resample" + segment + bounds +
         "  batch: {stage: batch, from: segment, files: " + std::to_string(k.batch) +
         ", queue: " + std::to_string(k.queue) +
         "}\n"
         "  mel: {stage: mel, from: batch, n_fft: 512, win_length: 400, hop: 160, n_mels: 40, " +
         (mel.find("log:") == std::string::npos ? "log: db" : "center: true") + mel + bounds +
         nodes + "  write: {stage: hdf5_write, from: " + last + ", path: \"${OUT}\"" + bounds;
}

/// A pipeline from a folder to rows of 20 bands, one every 256 samples at 8 kHz. `files` and
/// `write`: options of these stages.
inline std::string rows_pipeline(const std::string& files,
                                 const std::string& write = "overwrite: false",
                                 const std::string& stage = "hdf5_write") {
  return fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}", {}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode, length: 256}}
  batch: {{stage: batch, from: segment, files: 3}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 256, n_mels: 20, center: false}}
  write: {{stage: {}, from: mel, path: "${{OUT}}", {}}}
)",
                     files, stage, write);
}

struct Clips {
  unsigned seed;  ///< of the lengths
  unsigned count;
  unsigned longest;  ///< lengths are 200 frames to this many more
  std::set<unsigned> long_ones;
  std::int64_t long_frames;  ///< length of the long clips
};

/// Writes clips of these kinds and of several rates in turn, in four folders, and three that leave
/// no rows: clips/1/bad.wav, clips/2/empty.wav, clips/3/short.wav.
inline void write_clips(const TempFolder& folder, const std::vector<const char*>& kinds,
                        const Clips& clips) {
  std::mt19937 random(clips.seed);
  const int rates[] = {8000, 16000, 44100};
  for (unsigned i = 0; i < clips.count; ++i) {
    const auto frames = static_cast<std::int64_t>(random() % clips.longest + 200);
    const AudioKind& kind = audio_kind(kinds[i % kinds.size()]);
    write_audio(
        folder.file("clips/" + std::to_string(i % 4) + "/" + std::to_string(i) + "." + kind.ending),
        kind, rates[i % 3],
        test_signal(clips.long_ones.contains(i) ? clips.long_frames : frames, kind.channels,
                    i + 1));
  }
  folder.write("clips/1/bad.wav", "this is not sound");
  folder.write("clips/2/empty.wav", "");
  write_wav(folder.file("clips/3/short.wav"), 3);
}

}  // namespace melflow::test
