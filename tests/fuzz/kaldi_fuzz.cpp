// Feeds any bytes as a data folder of Kaldi, for libFuzzer (long/fuzz.sh): the first byte says what
// of it is given and whether commands are kept; then come its files, U+0001 between them.
#include <string>

#include "pipeline/base/problem.h"
#include "stages/corpus/kaldi_folder.h"
#include "tests/fuzz/read_table.h"

using namespace melflow;
using namespace melflow::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned how = data[0];
  const std::string_view pieces(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string segments = (how & 1U) != 0 ? "segments" : "other";
  const std::string speakers = (how & 2U) != 0 ? "utt2spk" : "spk2utt";
  write_files(pieces, {"wav.scp", segments, "text", speakers, "utt2lang", "reco2dur"});
  const std::string path = folder() / ((how & 4U) != 0 ? "wav.scp" : "");
  try {
    KaldiFolder table(
        path, {},
        (how & 8U) != 0 ? KaldiFolder::OtherCommands::keep : KaldiFolder::OtherCommands::fail);
    read_all(table, false);  // paths are bytes
    static_cast<void>(table.remarks({0, 1, 5, 6, 7, 8}));
  } catch (const RunError&) {
    // An unreadable folder is reported.
  }
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string segments = "u1 r1 0.5 1.5\nu2 r1 1.5 -1\nu3 r2 0 2\n",
                      text = "u1 some words\nu3 others\n", languages = "u1 en\nu2 de\n",
                      durations = "r1 2.5\nr2 2\n";
    seed("segments", "\3" + std::string("r1 a/r1.wav\nr2 flac -dcs \"b c.flac\" |\n\1") + segments +
                         "\1" + text + "\1u1 s1\nu2 s1\nu3 s2\n\1" + languages + "\1" + durations);
    seed("commands",
         std::string(1, '\11') +
             "u1 sph2pipe -f wav -p -c 2 'a.sph' |\nu2 sox a.wav -t wav - remix 2 |\nu3 cat x |\n"
             "u4 raw.ark:123\nu5 other $PROGRAM |\nu6 |\n\1" +
             segments);
    seed("speakers", std::string(1, '\0') + "u1 a.wav\nu2 b.wav\n\1\1" + text +
                         "\1s1 u1 u2\ns2 u3\n\1" + languages);
    seed("list", std::string(1, '\4') + "u1\ta.wav \r\n\nu2  b.wav\n");
  });
}
