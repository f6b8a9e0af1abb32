// Kaldi's programs with their .conf files, and the feature extractors of Lhotse.
#include <utility>

#include "stages/model_files/front_end_class.h"

namespace melflow {
namespace {

constexpr FrontEndClass kPrograms[] = {
    {"compute-fbank-feats",
     "sample_frequency:num=16000 frame_length:num=25 frame_shift:num=10 "
     "preemphasis_coefficient=0.97 remove_dc_offset=true dither=1.0 window_type='povey' "
     "blackman_coeff=0.42 round_to_power_of_two=true snip_edges=true num_mel_bins=23 "
     "low_freq:num=20 high_freq:num=0 vtln_low:num=100 vtln_high:num=-500 vtln_warp=1.0 "
     "vtln_map=='' use_energy=false raw_energy=true energy_floor=0.0 htk_compat=false "
     "use_log_fbank=true use_power=true subtract_mean=false channel=-1 min_duration==0.0 "
     "allow_downsample==false allow_upsample==false",
     "", "debug_mel output_format verbose max_feature_vectors write_utt2dur utt2spk",
     "channel < 1 | channel | the channel in a node decode: downmix",
     "mel: {preset: kaldi, sample_rate: =sample_frequency, "
     "win_length: =int(sample_frequency * 0.001 * frame_length), "
     "n_fft: =pow2(int(sample_frequency * 0.001 * frame_length)) if round_to_power_of_two else "
     "int(sample_frequency * 0.001 * frame_length), "
     "hop: =int(sample_frequency * 0.001 * frame_shift), preemphasis: =preemphasis_coefficient, "
     "remove_dc: =remove_dc_offset, dither: =none if dither == 0 else dither, "
     "window: =pick(window_type, 'povey', 'povey', 'hanning', 'hann', 'hamming', 'hamming', "
     "'rectangular', 'boxcar', 'blackman', 'blackman', 'sine', 'sine'), "
     "blackman_coeff: =blackman_coeff if window_type == 'blackman' and blackman_coeff != 0.42 "
     "else none, "
     "snip_edges: =snip_edges, n_mels: =num_mel_bins, fmin: =low_freq, fmax: =high_freq, "
     "vtln_warp: =none if vtln_warp == 1 else vtln_warp, "
     "vtln_low: =none if vtln_warp == 1 else vtln_low, "
     "vtln_high: =none if vtln_warp == 1 else vtln_high, "
     "use_energy: =true if use_energy else none, "
     "raw_energy: =raw_energy if use_energy else none, "
     "energy_floor: =energy_floor if use_energy and energy_floor > 0 else none, "
     "htk_compat: =true if use_energy and htk_compat else none, "
     "log: =none if use_log_fbank else 'none', amin: =none, power: =none if use_power else 1, "
     "normalize: ='per_feature' if subtract_mean else none, "
     "norm_variance: =false if subtract_mean else none}",
     "dither > 0 | dither: noise of melflow's own generator, with Kaldi's deviation; without it: "
     "{file: FILE, dither: 0}"},
    {"compute-mfcc-feats",
     "sample_frequency:num=16000 frame_length:num=25 frame_shift:num=10 "
     "preemphasis_coefficient=0.97 remove_dc_offset=true dither=1.0 window_type='povey' "
     "blackman_coeff=0.42 round_to_power_of_two=true snip_edges=true num_mel_bins=23 "
     "low_freq:num=20 high_freq:num=0 vtln_low:num=100 vtln_high:num=-500 vtln_warp=1.0 "
     "vtln_map=='' use_energy=true raw_energy=true energy_floor=0.0 htk_compat==false "
     "num_ceps=13 cepstral_lifter:num=22 subtract_mean==false channel=-1 min_duration==0.0 "
     "allow_downsample==false allow_upsample==false",
     "", "debug_mel output_format verbose max_feature_vectors write_utt2dur utt2spk",
     "channel < 1 | channel | the channel in a node decode: downmix",
     "mel: {as compute-fbank-feats}\n"
     "mfcc: {n_mfcc: =num_ceps, lifter: =cepstral_lifter if cepstral_lifter else none, "
     "lifter_style: ='kaldi' if cepstral_lifter else none}",
     "dither > 0 | dither: noise of melflow's own generator, with Kaldi's deviation; without it: "
     "{file: FILE, dither: 0}"},
};

constexpr FrontEndClass kExtractors[] = {
    {"kaldi-fbank",
     "sampling_rate=16000 frame_length=0.025 frame_shift=0.01 round_to_power_of_two=true "
     "remove_dc_offset=true preemph_coeff=0.97 window_type='povey' dither=0.0 snip_edges=false "
     "energy_floor=1e-10 raw_energy=true use_energy=false use_fft_mag=false low_freq=20.0 "
     "high_freq=-400.0 num_filters=80 num_mel_bins:int?=none norm_filters=false "
     "torchaudio_compatible_mel_scale=true",
     "", "",
     "frame_shift <= frame_length | frame_shift | a shift that is not longer than the window",
     "mel: {preset: kaldi, input_scale: 1, sample_rate: =sampling_rate, "
     "win_length: =int(frame_length * sampling_rate), "
     "n_fft: =pow2(int(frame_length * sampling_rate)) if round_to_power_of_two else "
     "int(frame_length * sampling_rate), hop: =int(frame_shift * sampling_rate), "
     "preemphasis: =preemph_coeff, remove_dc: =remove_dc_offset, "
     "dither: =none if dither == 0 else dither, "
     "window: =pick(window_type, 'povey', 'povey', 'hanning', 'hann', 'hamming', 'hamming', "
     "'rectangular', 'boxcar', 'blackman', 'blackman'), "
     "periodic: =true if window_type == 'blackman' else none, snip_edges: =snip_edges, "
     "n_mels: =num_filters if num_mel_bins == none else num_mel_bins, fmin: =low_freq, "
     "fmax: =high_freq, bin_hz: =none if torchaudio_compatible_mel_scale else 'lhotse', "
     "norm: ='1' if norm_filters and not torchaudio_compatible_mel_scale else none, "
     "power: =1 if use_fft_mag else none, use_energy: =true if use_energy else none, "
     "raw_energy: =raw_energy if use_energy else none, "
     "energy_floor: =energy_floor if use_energy else none, "
     "energy_eps: =1e-15 if use_energy else none}",
     "dither > 0 | dither: noise of melflow's own generator"},
    {"kaldi-mfcc",
     "sampling_rate=16000 frame_length=0.025 frame_shift=0.01 round_to_power_of_two=true "
     "remove_dc_offset=true preemph_coeff=0.97 window_type='povey' dither=0.0 snip_edges=false "
     "use_energy==false use_fft_mag=false low_freq=20.0 "
     "high_freq=-400.0 num_filters=23 num_mel_bins:int?=none norm_filters=false "
     "torchaudio_compatible_mel_scale=true num_ceps=13 cepstral_lifter:num=22",
     "", "energy_floor raw_energy",
     "frame_shift <= frame_length | frame_shift | a shift that is not longer than the window",
     "mel: {as kaldi-fbank}\n"
     "mfcc: {n_mfcc: =num_ceps, lifter: =cepstral_lifter if cepstral_lifter else none, "
     "lifter_style: ='kaldi' if cepstral_lifter else none}",
     "dither > 0 | dither: noise of melflow's own generator"},
    {"kaldi-spectrogram",
     "sampling_rate=16000 frame_length=0.025 frame_shift=0.01 round_to_power_of_two=true "
     "remove_dc_offset=true preemph_coeff=0.97 window_type='povey' dither=0.0 snip_edges=false "
     "use_energy==false use_fft_mag=false",
     "", "energy_floor raw_energy",
     "frame_shift <= frame_length | frame_shift | a shift that is not longer than the window",
     "mel: {as kaldi-fbank, n_mels: =none, fmin: =none, fmax: =none, output: spectrogram, "
     "log: none}",
     "dither > 0 | dither: noise of melflow's own generator"},
    {"kaldi-log-spectrogram",
     "sampling_rate=16000 frame_length=0.025 frame_shift=0.01 round_to_power_of_two=true "
     "remove_dc_offset=true preemph_coeff=0.97 window_type='povey' dither=0.0 snip_edges=false "
     "use_energy==false use_fft_mag=false",
     "", "energy_floor raw_energy",
     "frame_shift <= frame_length | frame_shift | a shift that is not longer than the window",
     "mel: {as kaldi-fbank, n_mels: =none, fmin: =none, fmax: =none, output: spectrogram, "
     "amin: 1e-30, log_offset: 1e-15}",
     "dither > 0 | dither: noise of melflow's own generator"},
    {"fbank",
     "dither=0.0 window_type='povey' frame_length=0.025 frame_shift=0.01 remove_dc_offset=true "
     "round_to_power_of_two=true energy_floor=1e-10 min_duration==0.0 "
     "preemphasis_coefficient=0.97 raw_energy=true low_freq=20.0 high_freq=-400.0 "
     "num_mel_bins=80 use_energy=false vtln_low=100.0 vtln_high=-500.0 vtln_warp=1.0",
     "sampling_rate=16000", "",
     "frame_shift <= frame_length | frame_shift | a shift that is not longer than the window",
     "mel: {preset: kaldi, input_scale: 1, sample_rate: =sampling_rate, "
     "win_length: =int(sampling_rate * 0.001 * (frame_length * 1000)), "
     "n_fft: =pow2(int(sampling_rate * 0.001 * (frame_length * 1000))) if round_to_power_of_two "
     "else int(sampling_rate * 0.001 * (frame_length * 1000)), "
     "hop: =int(sampling_rate * 0.001 * (frame_shift * 1000)), "
     "preemphasis: =preemphasis_coefficient, remove_dc: =remove_dc_offset, "
     "dither: =none if dither == 0 else dither, "
     "window: =pick(window_type, 'povey', 'povey', 'hanning', 'hann', 'hamming', 'hamming', "
     "'rectangular', 'boxcar', 'blackman', 'blackman'), snip_edges: false, "
     "n_mels: =num_mel_bins, fmin: =low_freq, fmax: =high_freq, "
     "vtln_warp: =none if vtln_warp == 1 else vtln_warp, "
     "vtln_low: =none if vtln_warp == 1 else vtln_low, "
     "vtln_high: =none if vtln_warp == 1 else vtln_high, "
     "use_energy: =true if use_energy else none, "
     "raw_energy: =raw_energy if use_energy else none, "
     "energy_floor: =energy_floor if use_energy else none}",
     "dither > 0 | dither: noise of melflow's own generator\n"
     "true | sampling_rate is that of the recordings, which the file does not have: 16000; for "
     "another one write it beside file"},
    {"mfcc",
     "dither=0.0 window_type='povey' frame_length=0.025 frame_shift=0.01 remove_dc_offset=true "
     "round_to_power_of_two=true energy_floor=1e-10 min_duration==0.0 "
     "preemphasis_coefficient=0.97 raw_energy=true low_freq=20.0 high_freq=-400.0 "
     "num_mel_bins=23 use_energy=false vtln_low=100.0 vtln_high=-500.0 vtln_warp=1.0 "
     "cepstral_lifter=22.0 num_ceps=13",
     "sampling_rate=16000", "",
     "frame_shift <= frame_length | frame_shift | a shift that is not longer than the window",
     "mel: {as fbank}\n"
     "mfcc: {n_mfcc: =num_ceps, lifter: =cepstral_lifter if cepstral_lifter else none, "
     "lifter_style: ='kaldi' if cepstral_lifter else none}",
     "dither > 0 | dither: noise of melflow's own generator\n"
     "true | sampling_rate is that of the recordings, which the file does not have: 16000; for "
     "another one write it beside file"},
};

constexpr std::pair<std::string_view, std::string_view> kNoExtractors[] = {
    {"whisper-fbank",
     "it adds or leaves out a row so that there are round(samples / hop); without that it is the "
     "preset whisper"},
    {"librosa-fbank", "it adds or leaves out a row so that there are round(samples / hop)"},
    {"s3prl-ssl", "it is a model"},
};

}  // namespace

constinit const FrontEndFamily kKaldi{"kaldi", "Kaldi", "feature", kPrograms, {}, ""};
constinit const FrontEndFamily kLhotse{"lhotse",    "lhotse 1.33.0", "feature_type device",
                                       kExtractors, kNoExtractors,   "round | Lhotse's resample"};

}  // namespace melflow
