// Corpora that are published, and formats of lists, by the names in a folder.
#pragma once

#include <filesystem>
#include <optional>

#include "stages/corpus/guess/guess_parts.h"

namespace melflow::guesses {

/// Each says how to read the corpus of that kind in a folder; nullopt where there is none. They
/// throw RunError where a list in it cannot be read.
using Guess = std::optional<CorpusGuess>(const std::filesystem::path& folder);
Guess kaldi, lj_speech, common_voice, speech_commands, vox_celeb, vctk, libri_speech, audio_set,
    lhotse;
/// The same for the manifests of Lhotse among these names in the folder.
std::optional<CorpusGuess> lhotse_of(const Texts& names, const std::filesystem::path& folder);

}  // namespace melflow::guesses
