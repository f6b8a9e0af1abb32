// Bytes as a URL that contains them.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// "data:image/png;base64,..."; `type`: the media type, such as image/png.
std::string data_url(std::string_view type, std::string_view bytes);

}  // namespace melflow
