// Pages for a browser that load nothing from elsewhere: tables of a JSON document, which a script
// replaces by drawings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace melflow {

/// Returns a page that shows the document. `script` draws it by the functions of page.html, which
/// has no other source of scripts, styles, pictures or sounds than itself.
std::string page(const std::string& title, const nlohmann::ordered_json& document,
                 std::string_view script);

}  // namespace melflow
