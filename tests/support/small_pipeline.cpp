#include "tests/support/small_pipeline.h"

#include <fmt/format.h>

namespace melflow::test {

std::string nodes_to_mel(const std::string& files, const std::string& decode,
                         const std::string& segment, const std::string& mel) {
  return fmt::format(R"(  files: {{stage: file_list, root: "${{DATA}}", {}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, {}}}
  segment: {{stage: segment, from: decode, {}}}
  batch: {{stage: batch, from: segment, files: 3}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 128, n_mels: 20, {}}}
)",
                     files, decode, segment, mel);
}

void make_corpus(const TempFolder& folder) {
  for (unsigned i = 0; i < 6; ++i)
    write_wav(folder.file(fmt::format("clips/{}/{}.wav", i < 3 ? "dog" : "cat", i)), 4000 + 512 * i,
              kRate, i);
  folder.write("clips/cat/broken.wav", "no sound");
  write_wav(folder.file("clips/cat/short.wav"), 10, kRate);
  folder.folder("clips/dog/folder.wav");
  write_wav(folder.file("scratch.wav"), 6000, kRate, 9);
  copy_truncated(folder / "scratch.wav", folder / "clips/dog/cut.wav", 11'044);
  write_wav(folder.file("clips/top.wav"), 5000, kRate, 7);
}

}  // namespace melflow::test
