// JSON as Python's json.dumps writes it, which is more than the standard has: NaN and Infinity, and
// the bytes of paths that are not UTF-8 as lone surrogates, \udc80 to \udcff (os.fsdecode).
// melflow's own documents write such bytes in the same way.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace melflow {

/// Marks the escapes of bytes so that a parser takes them as text, and restore_bytes() knows them;
/// no value where the text has the mark itself, U+FDD0, which is no character.
std::optional<std::string> with_marked_bytes(std::string_view json);
/// Restores the bytes that with_marked_bytes() marked, in a text that was parsed.
void restore_bytes(std::string& text);
/// Does so in all texts of a value, of any class of nlohmann's.
template <class Json>
void restore_all_bytes(Json& json) {
  if (json.is_string())
    restore_bytes(json.template get_ref<std::string&>());
  else if (json.is_structured())
    for (Json& one : json) restore_all_bytes(one);
}

/// Standard JSON of Python's: bytes marked, null for NaN, and "Infinity" or "-Infinity", in quotes;
/// no value where there is none of these, or the mark itself.
std::optional<std::string> standard_json(std::string_view json);

}  // namespace melflow
