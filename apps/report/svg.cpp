#include "apps/report/svg.h"

#include <fmt/format.h>

#include "apps/report/format.h"

namespace melflow {

std::string svg_text(double x, double y, const char* anchor, std::string_view text,
                     const char* attributes) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}{}>{}</text>)", x, y, anchor,
                     *attributes == '\0' ? "" : " ", attributes, html_text(text)) +
         "\n";
}

std::string svg_document(double width, double height, const std::string& body) {
  // Not every viewer knows `href` without xlink.
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" font-family="system-ui,sans-serif" font-size="13" xml:space="preserve">)",
             width, height) +
         kSvgMark + "\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + body + "</svg>\n";
}

}  // namespace melflow
