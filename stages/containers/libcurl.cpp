#include "stages/containers/libcurl.h"

#include <dlfcn.h>

#include <initializer_list>

namespace melflow {

Curl::Curl() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  int (*global_init)(long) = nullptr;
  const auto get = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(library, name));
    return function != nullptr;
  };
  is_here = get(init, "curl_easy_init") && get(set, "curl_easy_setopt") &&
            get(perform, "curl_easy_perform") && get(info, "curl_easy_getinfo") &&
            get(cleanup, "curl_easy_cleanup") && get(text_of, "curl_easy_strerror") &&
            get(global_init, "curl_global_init") && global_init(3) == 0;
}

const Curl& curl() {
  static const Curl loaded;
  return loaded;
}

}  // namespace melflow
