// Shows the page of a run in a browser, which must not complain.
#include <doctest/doctest.h>

#include <string>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/skip.h"

namespace melflow::test::html_in_browser_test {
namespace {

Ended browse(const TempFolder& folder, const std::string& page) {
  return test::run(folder,
                   {"/bin/sh", "-c",
                    "HOME=$PWD timeout 60 chromium --headless --no-sandbox --disable-gpu "
                    "--disable-dev-shm-usage --user-data-dir=$PWD/profile --enable-logging=stderr "
                    "--dump-dom " +
                        page});
}

}  // namespace

TEST_CASE("html report: a browser shows it without a word on its console") {
  const TempFolder folder;
  if (browse(folder, "about:blank").code != 0)
    return test::skip("chromium is not installed, or does not start here");
  std::filesystem::create_directories(folder / "data");
  test::write_wav(folder / "data/a.wav", 8000, 8000);
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5}\n");
  exits(0, test::run(folder, {MELFLOW_PROGRAM, "run", "p.yaml", "--report", "r.html"}));
  const Ended shown = exits(0, browse(folder, "file://$PWD/r.html"));
  // The browser's view of the page, which has a title, drawings and a table.
  CHECK(has(shown.out, "<title>melflow: 1 file, 1 ok, 0 skipped, 0 failed</title>"));
  CHECK(has(shown.out, "class=\"h\">write</text>"));
  CHECK(has(shown.out, "</details>"));
  CHECK_FALSE(has(shown.err, "CONSOLE"));
}

}  // namespace melflow::test::html_in_browser_test
