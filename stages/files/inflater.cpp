#include "stages/files/inflater.h"

#include <zlib.h>

#include <new>

namespace melflow {

Inflater::Inflater(Format format) : format_(format), stream_(std::make_unique<z_stream>()) {
  if (inflateInit2(stream_.get(), format == Format::gzip ? 16 + MAX_WBITS : -MAX_WBITS) != Z_OK)
    throw std::bad_alloc();
}

Inflater::~Inflater() { inflateEnd(stream_.get()); }

bool Inflater::take(std::string_view packed, const Out& out) {
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream_->avail_in = static_cast<uInt>(packed.size());
  std::byte piece[1 << 16];
  do {
    // Zeros behind a member pad it, as those of a tape's last block; gzip and Python skip them.
    while (format_ == Format::gzip && is_whole_ && stream_->avail_in > 0 && *stream_->next_in == 0)
      ++stream_->next_in, --stream_->avail_in;
    if (is_whole_ && stream_->avail_in == 0) return true;
    if (is_whole_) {  // another member follows
      if (inflateReset(stream_.get()) != Z_OK) return false;
      is_whole_ = false;
    }
    stream_->next_out = reinterpret_cast<Bytef*>(piece);
    stream_->avail_out = sizeof piece;
    const int state = inflate(stream_.get(), Z_NO_FLUSH);
    const std::size_t made = sizeof piece - stream_->avail_out;
    if (made > 0 && !out({piece, made})) return false;
    if (state == Z_STREAM_END)
      is_whole_ = true;
    else if (state == Z_BUF_ERROR)
      return true;  // all is unpacked
    else if (state != Z_OK)
      return false;
  } while (stream_->avail_in > 0 || stream_->avail_out == 0);
  return true;
}

}  // namespace melflow
