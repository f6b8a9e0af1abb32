// Shared helpers of jobs with a mel node on a device.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

constexpr int kRate = 16000;

inline std::string cuda_pipeline(const std::string& segment, const std::string& mel) {
  return R"(version: 1
memory: {host: 256MiB}
workers: 2
graph:
  files:   {stage: file_list, root: "${DATA}"}
  read:    {stage: disk_read, from: files, whole: 64KiB}
  decode:  {stage: decode, from: read, block: 64KiB}
  segment: {stage: segment, from: decode)" +
         segment + R"(}
  batch:   {stage: batch, from: segment, files: 3}
  mel:     {stage: mel, from: batch, )" +
         mel + R"(}
  write:   {stage: hdf5_write, from: mel, path: "${OUT}", overwrite: true}
)";
}

inline JobResult run_cuda(const std::string& yaml, const TempFolder& folder,
                          const std::string& out) {
  return run_job(yaml, in_out(folder / "clips", folder / out));
}

// Short recordings, one of several blocks, floats among int16, and two files that give no rows.
inline void make_clips(const TempFolder& folder) {
  for (unsigned i = 0; i < 7; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 9000 + 777 * i, kRate, i);
  write_audio(folder.file("clips/long.flac"), audio_kind("flac s16"), kRate, test_signal(120'000));
  write_audio(folder.file("clips/x_float.wav"), audio_kind("wav float"), kRate,
              test_signal(20'000));
  write_wav(folder.file("clips/y_short.wav"), 20, kRate);
  folder.write("clips/z_broken.wav", "no sound");
}

/// Returns an entry in the report of the node mel; "" where it is missing.
inline std::string summary_of(const JobResult& job, const std::string& name) {
  for (const auto& [key, value] : job.stage("mel").summary)
    if (key == name) return value.text();
  return "";
}

}  // namespace melflow::test
