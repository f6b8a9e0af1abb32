// Tables are uploaded once; a launch is one kernel, or three for each chunk of the path cufft.

#include "cuda/mel_kernels.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "cuda/any_size_kernels.cuh"
#include "cuda/condition_kernel.cuh"
#include "cuda/cufft_library.h"
#include "cuda/device.cuh"
#include "cuda/fused_launch.cuh"
#include "cuda/fused_shape.h"

namespace melflow::cuda {
namespace {

using Launch = MelKernels::Launch;

// Bytes of a chunk's frames: with their spectra, half of a large device's L2 cache.
constexpr std::size_t chunk_bytes = 12U << 20;

void require(bool ok, const std::string& text) {
  if (!ok) throw std::invalid_argument(text);
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

FusedKernel fused_kernel_for(int n_fft, SampleType samples, NumberType operands) {
  switch (n_fft) {
    case 256:
      return fused_kernel_256(samples, operands);
    case 400:
      return fused_kernel_400(samples, operands);
    case 512:
      return fused_kernel_512(samples, operands);
    case 1024:
      return fused_kernel_1024(samples, operands);
    default:
      return fused_kernel_2048(samples, operands);
  }
}

const char* name_of(NumberType type) {
  if (type == NumberType::float32) return "fp32";
  return type == NumberType::float16 ? "fp16" : "bf16";
}

class FusedPath {
 public:
  FusedPath(const FrontEnd& front_end, const KernelOptions& options)
      : tables_(front_end, options.operands),
        operands_(options.operands),
        first_(tables_.first),
        middle_(tables_.middle),
        turn_(tables_.turn),
        window_int16_(tables_.window_int16),
        window_float_(tables_.window_float),
        pieces_(tables_.bands.pieces()),
        band_weights_(tables_.bands.weights()),
        bytes_(fused_block_bytes(tables_, operands_)) {
    int device = 0, processors = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
          "cudaDeviceGetAttribute");
    for (const SampleType type : {SampleType::int16, SampleType::float32}) {
      const auto* kernel = reinterpret_cast<const void*>(kernel_for(type));
      // The kernel's attribute for the whole process, so the same for every front end.
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(most_block_bytes)),
            "cudaFuncSetAttribute");
      int blocks = 0;
      check(
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 32 * fused_warps, bytes_),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
      resident_[type == SampleType::int16 ? 0 : 1] =
          static_cast<unsigned>(std::max(1, blocks * processors));
    }
  }

  void launch(cudaStream_t stream, const Launch& launch, const Rows& rows) const {
    const bool is_int16 = launch.sample_type == SampleType::int16;
    FusedArguments a{};
    a.settings = tables_.settings;
    a.tables = {is_int16 ? window_int16_.data() : window_float_.data(), first_.data(),
                middle_.data(), turn_.data()};
    a.pieces = pieces_.data();
    a.band_weights = band_weights_.data();
    a.bands = tables_.bands.counts();
    a.samples = launch.samples;
    a.offsets = launch.offsets;
    a.n_frames = launch.n_frames;
    a.rows = rows;
    a.frame_bytes = static_cast<std::uint32_t>(tables_.bytes_of_frame(operands_));
    a.partials_at = static_cast<std::uint32_t>(tables_.partials_at(operands_));
    const auto of_block = static_cast<unsigned>(fused_warps * 32 / tables_.lanes);
    const unsigned blocks =
        std::min((launch.capacity + of_block - 1) / of_block, resident_[is_int16 ? 0 : 1]);
    void* pointers[] = {&a};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel_for(launch.sample_type)),
                           dim3(blocks), dim3(32 * fused_warps), pointers, bytes_, stream),
          "cudaLaunchKernel");
  }

 private:
  FusedKernel kernel_for(SampleType samples) const {
    return fused_kernel_for(tables_.settings.n_fft, samples, operands_);
  }

  FusedTables tables_;
  NumberType operands_;
  DeviceTable<Complex> first_, middle_, turn_, window_int16_, window_float_;
  DeviceTable<Piece> pieces_;
  DeviceTable<float> band_weights_;
  std::size_t bytes_;          // shared memory per block
  unsigned resident_[2] = {};  // resident blocks on the device, int16 and float
};

void check_cufft(int result, const char* call) {
  if (result != 0) throw CudaError(std::string(call) + ": " + cufft_error_name(result));
}

class CufftPath {
 public:
  explicit CufftPath(const FrontEnd& front_end)
      : tables_(front_end),
        window_int16_(tables_.window_int16),
        window_float_(tables_.window_float),
        pieces_(tables_.bands.pieces()),
        band_weights_(tables_.bands.weights()),
        layout_(levels_layout(tables_)) {
    const auto n = static_cast<std::size_t>(tables_.settings.n_fft);
    // The same for any batch: with another count cuFFT may compute in another order.
    chunk_ =
        static_cast<std::uint32_t>(std::max<std::size_t>(chunk_bytes / (n * sizeof(float)), 1));
    frame_bytes_ = aligned(chunk_ * n * sizeof(float));
    spectrum_bytes_ =
        aligned(chunk_ * static_cast<std::size_t>(tables_.settings.n_bins) * sizeof(Complex));
    if (layout_.warp_bytes == 0)
      partial_bytes_ =
          aligned(std::size_t{any_size_blocks} * static_cast<std::size_t>(layout_.warps) *
                  static_cast<std::size_t>(tables_.bands.counts().partials()) * 4);
    const CufftFunctions& fft = library_.functions();
    check_cufft(fft.create(&plan_), "cufftCreate");
    try {
      make_plan();
    } catch (...) {
      fft.destroy(plan_);
      throw;
    }
  }
  ~CufftPath() { library_.functions().destroy(plan_); }
  CufftPath(const CufftPath&) = delete;
  CufftPath& operator=(const CufftPath&) = delete;

  std::size_t work_bytes() const {
    return frame_bytes_ + spectrum_bytes_ + partial_bytes_ + aligned(fft_bytes_);
  }

  std::string description() const {
    int version = 0;
    check_cufft(library_.functions().get_version(&version), "cufftGetVersion");
    return "cuFFT " + std::to_string(version) + " (" + library_.path() + ")";
  }

  void launch(cudaStream_t stream, const Launch& launch, const Rows& rows) {
    auto* const work = static_cast<std::byte*>(launch.work);
    auto* const frames = reinterpret_cast<float*>(work);
    auto* const spectra = reinterpret_cast<Complex*>(work + frame_bytes_);
    std::byte* const behind = work + frame_bytes_ + spectrum_bytes_;
    auto* const partials = partial_bytes_ > 0 ? reinterpret_cast<float*>(behind) : nullptr;
    const CufftFunctions& fft = library_.functions();
    check_cufft(fft.set_work_area(plan_, behind + partial_bytes_), "cufftSetWorkArea");
    check_cufft(fft.set_stream(plan_, stream), "cufftSetStream");
    const float* window =
        launch.sample_type == SampleType::int16 ? window_int16_.data() : window_float_.data();
    for (std::uint32_t first = 0; first < launch.capacity; first += chunk_) {
      const Chunk chunk{first, std::min(chunk_, launch.capacity - first), launch.n_frames};
      launch_window(
          stream, launch.sample_type,
          {tables_.settings, window, launch.samples, launch.offsets, chunk, chunk_, frames});
      check_cufft(fft.execute_real_to_complex(plan_, frames, spectra), "cufftExecR2C");
      launch_levels(stream, layout_,
                    {tables_.settings, pieces_.data(), band_weights_.data(), tables_.bands.counts(),
                     spectra, chunk, rows, partials, layout_.warp_bytes});
    }
  }

 private:
  void make_plan() {
    const CufftFunctions& fft = library_.functions();
    int n = tables_.settings.n_fft;
    const int n_bins = tables_.settings.n_bins;
    check_cufft(fft.set_auto_allocation(plan_, 0), "cufftSetAutoAllocation");
    check_cufft(
        fft.make_plan_many(plan_, 1, &n, nullptr, 1, n, nullptr, 1, n_bins,
                           CufftFunctions::real_to_complex, static_cast<int>(chunk_), &fft_bytes_),
        "cufftMakePlanMany");
  }

  CufftLibrary library_;
  AnySizeTables tables_;
  DeviceTable<float> window_int16_, window_float_;
  DeviceTable<Piece> pieces_;
  DeviceTable<float> band_weights_;
  LevelsLayout layout_;
  CufftFunctions::Plan plan_ = 0;
  std::uint32_t chunk_ = 0;  // number of frames
  // Sizes of the parts of a work area, in this order.
  std::size_t frame_bytes_ = 0, spectrum_bytes_ = 0, partial_bytes_ = 0, fft_bytes_ = 0;
};

// Conditioned frames, placed before the work area of the path that takes them.
class Conditioning {
 public:
  Conditioning(const ConditionSettings& settings, std::uint32_t most_frames)
      : settings_(settings),
        frame_bytes_(aligned(most_frames * static_cast<std::size_t>(settings_.stride) * 4)),
        offset_bytes_(aligned(most_frames * sizeof(std::uint32_t))) {
    if (frame_bytes_ / 4 > 0xFFFFFFFFU)
      throw CudaError("a batch of more than 2^32 conditioned samples; lower mel.accumulate.bytes");
  }
  std::size_t work_bytes() const { return frame_bytes_ + offset_bytes_; }

  // Conditions the frames and returns the launch of the next kernel.
  Launch launch(cudaStream_t stream, const Launch& raw) const {
    auto* const work = static_cast<std::byte*>(raw.work);
    auto* const offsets = reinterpret_cast<std::uint32_t*>(work + frame_bytes_);
    launch_condition(stream, raw.sample_type,
                     {settings_, raw.samples, raw.offsets, raw.n_frames,
                      reinterpret_cast<float*>(work), offsets},
                     raw.capacity);
    Launch next = raw;
    next.samples = work;
    next.sample_type = SampleType::float32;
    next.offsets = offsets;
    next.work = work + work_bytes();
    return next;
  }

 private:
  ConditionSettings settings_;
  std::size_t frame_bytes_, offset_bytes_;
};

}  // namespace

class MelKernels::Impl {
 public:
  Impl(const FrontEnd& front_end, const KernelOptions& options, std::uint32_t most_frames)
      : options_(options),
        settings_(front_end.settings),
        most_frames_(most_frames),
        takes_int16_(front_end.takes_int16) {
    require(most_frames >= 1 && most_frames <= frame_limit,
            "a launch has from 1 to 2^30 frames, not " + std::to_string(most_frames));
    const bool fused = options.path == Path::fused ||
                       (options.path == Path::automatic && has_fused_kernel(front_end));
    if (fused) {
      require(has_fused_kernel(front_end),
              "no fused kernel has n_fft " + std::to_string(front_end.settings.n_fft) +
                  " and room for " + std::to_string(front_end.settings.columns) + " columns");
      fused_.emplace(front_end, options);
    } else {
      require(options.operands == NumberType::float32,
              std::string("operands are ") + name_of(options.operands) +
                  ", but a transform by cuFFT has fp32 only");
      cufft_.emplace(front_end);
    }
    if (front_end.condition) conditioning_.emplace(*front_end.condition, most_frames);
  }

  Path path() const { return fused_ ? Path::fused : Path::cufft; }
  std::string description() const {
    if (cufft_) return cufft_->description();
    return std::string("fused, ") + name_of(options_.operands) + " operands";
  }
  std::size_t work_bytes() const {
    return (conditioning_ ? conditioning_->work_bytes() : 0) + (cufft_ ? cufft_->work_bytes() : 0);
  }

  void launch(cudaStream_t stream, const Launch& launch) {
    require(launch.capacity <= most_frames_, "a launch for " + std::to_string(launch.capacity) +
                                                 " frames, at most " +
                                                 std::to_string(most_frames_) + " were announced");
    require(takes_int16_ || launch.sample_type == SampleType::float32,
            "samples are int16, but those that the host conditions are floats");
    if (launch.capacity == 0) return;
    require(
        launch.samples != nullptr && launch.offsets != nullptr && launch.n_frames != nullptr &&
            launch.rows != nullptr && (work_bytes() == 0 || launch.work != nullptr),
        "a launch needs samples, offsets, n_frames, rows and, where work_bytes() is not 0, work");
    const Rows rows(launch.rows, options_.rows, settings_.columns, settings_.levels_at);
    const Launch next = conditioning_ ? conditioning_->launch(stream, launch) : launch;
    if (fused_)
      fused_->launch(stream, next, rows);
    else
      cufft_->launch(stream, next, rows);
  }

 private:
  KernelOptions options_;
  Settings settings_;
  std::uint32_t most_frames_;
  bool takes_int16_;
  std::optional<Conditioning> conditioning_;
  std::optional<FusedPath> fused_;
  std::optional<CufftPath> cufft_;
};

MelKernels::MelKernels(const FrontEnd& front_end, const KernelOptions& options,
                       std::uint32_t most_frames)
    : impl_(std::make_unique<Impl>(front_end, options, most_frames)) {}
MelKernels::~MelKernels() = default;

Path MelKernels::path() const { return impl_->path(); }
std::string MelKernels::description() const { return impl_->description(); }
std::size_t MelKernels::work_bytes() const { return impl_->work_bytes(); }
void MelKernels::launch(void* stream, const Launch& launch) {
  impl_->launch(static_cast<cudaStream_t>(stream), launch);
}

}  // namespace melflow::cuda
