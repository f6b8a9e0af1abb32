// A model's own file as a front end: which class of which library wrote it, and with what.
//
// In:  the value of `preset` of mel or samples: a file, a folder with one, a call as text, or a map
//      {file: ..., KEY: VALUE, ignore: [KEY]} whose keys take the place of the file's.
// Out: its nodes, with plain values. Nothing of a file is executed, and no object is restored.
#pragma once

#include "pipeline/base/problem.h"
#include "stages/model_files/model_front_end.h"

namespace melflow {

/// Whether the value names a file, and no front end of the table (stages/front_ends.h).
bool is_model_file(const Value& preset);

/// Whether a text is a call, or the path of a file or folder of a model and of no list or
/// recording: by the names that libraries give, or a class that it names. A name of the table is
/// none.
bool is_model_path(const std::string& path);

/// What to say where the value is a name of the table and there is a model's folder of that name,
/// which is not read; else "".
std::string shadowed_folder(const Value& preset);

/// Throws ConfigError with every key that is neither used nor known to have no influence.
ModelFrontEnd read_model_file(const Value& preset);

/// The key of the map that names the file.
inline constexpr const char* kModelFileKey = "file";
/// The key of the map with the names of keys that have no influence, as the user says.
inline constexpr const char* kIgnoredKey = "ignore";

}  // namespace melflow
