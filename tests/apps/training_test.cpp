// The dataset that docs/training.md offers to PyTorch.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/skip.h"
#include "tests/support/source_path.h"

namespace melflow::training_test {

using test::Ended;

TEST_CASE("training: the example's dataset gives the rows of a split and label, and pads batches") {
  const test::TempFolder folder;
  int seconds = 0;
  for (const char* group : {"train/cat", "train/dog", "test/cat", "test/dog"})
    for (int i = 0; i < 4; ++i)
      test::write_clip(folder / fmt::format("data/{}/{}.wav", group, i), 8000,
                       0.2 + 0.1 * (++seconds % 5));
  test::write_text(folder / "data/train/cat/broken.wav", "no sound");
  test::write_text(folder / "p.yaml", R"(version: 1
graph:
  files: {stage: file_list, root: data, labels: parent_dir, splits: top_dir, columns: {clip: '([0-9])[.]wav'}}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  segment: {stage: segment, from: decode}
  batch: {stage: batch, from: segment}
  mel: {stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}
  write: {stage: hdf5_write, from: mel, path: out.h5}
)");
  exits(3, test::run(folder, {MELFLOW_PROGRAM, "run", "p.yaml", "--quiet"}));
  const Ended read =
      test::run(folder, {"/usr/bin/python3", test::source_path("tests/apps/training.py"), "out.h5",
                         test::source_path("docs/examples")});
  if (read.code == test::kSkipped) return test::skip("PyTorch is not installed");
  CHECK(read.code == 0);
}

}  // namespace melflow::training_test
