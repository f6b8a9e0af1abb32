// melflow export: the rows of a file for other libraries, written by the Python package
// (melflow/exports.py), in which the program starts itself.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/json_value.h"
#include "apps/report/printing.h"
#include "apps/verbs/verbs.h"
#include "stages/python/python_functions.h"

namespace melflow {
namespace {

struct ExportArguments {
  std::string file, folder, format, shard = "256MiB", utterance;
  int compression = 0;
  bool overwrite = false;
};

int export_rows(const ExportArguments& a) {
  PythonHost* host = python_host();
  if (host == nullptr) throw NeedsPython{"melflow export"};
  const std::string words = fmt::format(
      R"({{"source": {}, "folder": {}, "format": {}, "shard": {}, "utterance": {}, )"
      R"("compression": {}, )"
      R"("overwrite": {}}})",
      json_string(a.file), json_string(a.folder), json_string(a.format), json_string(a.shard),
      a.utterance.empty() ? "null" : json_string(a.utterance), a.compression, a.overwrite);
  say(stdout, "{}\n", host->run_verb("exports", words).printed);
  return kDone;
}

}  // namespace

Action add_export(CLI::App& verb) {
  auto arguments = std::make_shared<ExportArguments>();
  verb.add_option("FILE", arguments->file, "a file that `melflow run` wrote")->required();
  verb.add_option("DIR", arguments->folder, "the folder to make")->required();
  verb.add_option("--format", arguments->format,
                  "parquet, arrow (IPC), zarr (version 3), kaldi (ark and scp), lhotse (cuts with "
                  "features), espnet (a data folder), nemo (a manifest of the audio), tar "
                  "(WebDataset), shar (Lhotse Shar), safetensors, or hf (datasets of Hugging Face)")
      ->required()
      ->type_name("NAME")
      ->check(CLI::IsMember({"parquet", "arrow", "zarr", "kaldi", "lhotse", "espnet", "nemo", "tar",
                             "shar", "safetensors", "hf"}));
  verb.add_option("--shard", arguments->shard,
                  "about how many bytes of rows a file has (default: 256MiB)")
      ->type_name("SIZE");
  verb.add_option(
          "--utterance", arguments->utterance,
          "column whose texts name the recordings (default: their paths without the ending)")
      ->type_name("COLUMN");
  verb.add_option("--compression", arguments->compression,
                  "of kaldi, lhotse and espnet, by Kaldi's number, with loss: 1 (2, or 3 up to 8 "
                  "rows), 2 (8 bits by "
                  "quarters of each column), 3 (16 bits), 5 (8 bits); default: none")
      ->type_name("METHOD");
  verb.add_flag("--overwrite", arguments->overwrite, "replaces an earlier export");
  verb.footer(
      "Needs the Python package melflow and the library that reads the format. All rows are "
      "compared with\ntheir hashes, and as they are read back. DIR/recordings.csv lists every "
      "recording, also those\nwithout rows, and why.\n\n"
      "Example:\n"
      "  melflow export features.h5 parquet --format parquet\n"
      "  melflow export features.h5 shards --format tar --shard 1GiB");
  return [arguments] { return export_rows(*arguments); };
}

}  // namespace melflow
