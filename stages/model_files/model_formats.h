// Finds the class and its arguments in the text of a file. Each function returns nothing where the
// file is of another library.
#pragma once

#include <optional>
#include <string>

#include "pipeline/base/problem.h"
#include "stages/model_files/instance.h"

namespace melflow {

/// What is beside a file, and what the user says.
struct FileSurroundings {
  std::string folder;            ///< of the file, for the files that it names
  const Value* given = nullptr;  ///< keys that the user writes beside `file`
  std::string read_too;          ///< the bytes of further files, which count in the hash
};

std::optional<ModelInstance> kaldi_instance(const std::string& text, const std::string& path,
                                            FileSurroundings& beside, Problems& problems);
std::optional<ModelInstance> transformers_instance(const Value& root, FileSurroundings& beside,
                                                   Problems& problems);
std::optional<ModelInstance> lhotse_instance(const Value& root, FileSurroundings& beside,
                                             Problems& problems);
std::optional<ModelInstance> nemo_instance(const Value& root, FileSurroundings& beside,
                                           Problems& problems);
std::optional<ModelInstance> espnet_instance(const Value& root, FileSurroundings& beside,
                                             Problems& problems);
std::optional<ModelInstance> wenet_instance(const Value& root, FileSurroundings& beside,
                                            Problems& problems);
std::optional<ModelInstance> speechbrain_instance(const Value& root, FileSurroundings& beside,
                                                  Problems& problems);

/// Reads a call of torchaudio or librosa as text, "MelSpectrogram(16000, n_fft=400)", which is not
/// executed. `mark`: of the text.
std::optional<ModelInstance> call_instance(const std::string& text, const Mark& mark,
                                           Problems& problems);

}  // namespace melflow
