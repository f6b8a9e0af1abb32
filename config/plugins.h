// Plug-ins: shared libraries whose stages register themselves when they are loaded. Their code has
// all rights of the program, so only the user names them (docs/decisions/0026-plugins.md).
#pragma once

#include <string>

namespace melflow {

/// Loads a plug-in, unless it is loaded already, and adds its stages to Registry::global().
/// `path`: relative to the current folder, even without a '/'. Returns "" or what is wrong: no such
/// file, built for another version or C++ library, no stage in it, or a stage whose name exists
/// already. Then none of its stages is added.
[[nodiscard]] std::string load_plugin(const std::string& path);

/// Loads the plug-ins of the environment variable MELFLOW_PLUGINS, paths separated by ':'. Throws
/// ConfigError.
void load_plugins_of_environment();

/// Whether a plug-in with the file name of `path` is loaded, from any folder.
bool has_plugin(const std::string& path);

}  // namespace melflow
