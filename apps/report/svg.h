// Parts of drawings as SVG, with all text as text.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// Returns a line of text whose base line is at `y`; `anchor`: the part of it that is at `x`,
/// "start", "middle" or "end". `attributes` are added as they are.
std::string svg_text(double x, double y, const char* anchor, std::string_view text,
                     const char* attributes = "");

/// The mark that every document of svg_document() has near its beginning.
inline constexpr const char* kSvgMark = "<!-- melflow -->";

/// Returns a standalone document of this size [pixels] with a white background.
std::string svg_document(double width, double height, const std::string& body);

}  // namespace melflow
