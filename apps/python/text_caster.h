// Converts texts between C++ and Python, in place of nanobind/stl/string.h, which refuses bytes
// that are not UTF-8: file names, labels and texts of lists may be any bytes. Such bytes become
// lone surrogates, as with os.fsdecode(), and os.fsencode() restores them.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    object bytes = steal(PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape"));
    if (!bytes.is_valid()) {  // surrogates that stand for no byte: the receiver refuses such a text
      PyErr_Clear();
      bytes = steal(PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogatepass"));
    }
    value.assign(PyBytes_AsString(bytes.ptr()),
                 static_cast<std::size_t>(PyBytes_Size(bytes.ptr())));
    return true;
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                "surrogateescape");
  }
};

}  // namespace nanobind::detail
