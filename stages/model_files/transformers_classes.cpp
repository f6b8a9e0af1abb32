// The feature extractors of Transformers: what their code computes from preprocessor_config.json.
#include <utility>

#include "stages/model_files/front_end_class.h"

namespace melflow {
namespace {

constexpr std::string_view kCutAt30s =
    "true | the class cuts recordings at 30 s, here they stay whole; fit_samples before this node "
    "cuts them";

constexpr FrontEndClass kClasses[] = {
    {"WhisperFeatureExtractor",
     "feature_size=80 sampling_rate=16000 hop_length=160 chunk_length=30 n_fft=400 dither=0.0 "
     "padding_value==0.0 padding_side=='right'",
     "do_normalize=false", "n_samples nb_max_frames mel_filters window", "",
     "window: {length: =s(chunk_length)}\n"
     "if do_normalize: normalize_samples: {}\n"
     "mel: {preset: whisper, sample_rate: =sampling_rate, n_fft: =n_fft, hop: =hop_length, "
     "n_mels: =feature_size, fmax: =none if sampling_rate == 16000 else 8000, "
     "dither: =none if dither == 0 else dither}",
     "dither > 0 | dither: noise of melflow's own generator\n"
     "do_normalize | the class normalises what it cuts at chunk_length, here a longer recording is "
     "normalised whole, unless a segment cuts it"},
    {"Qwen3ASRFeatureExtractor",
     "feature_size=128 sampling_rate=16000 hop_length=160 chunk_length=30 n_fft=400 dither==0.0 "
     "n_window=50 min_length=8000 return_attention_mask==true padding_value==0.0 "
     "padding_side=='right'",
     "", "n_samples nb_max_frames mel_filters window",
     "min_length <= chunk_length * sampling_rate | min_length | a fit_samples of two lengths\n",
     "window: {length: =s(chunk_length)}\n"
     "mel: {preset: whisper, sample_rate: =sampling_rate, n_fft: =n_fft, hop: =hop_length, "
     "n_mels: =feature_size, fmax: =none if sampling_rate == 16000 else 8000}\n"
     "if n_window > 0 and chunk_length * sampling_rate // hop_length % (2 * n_window) != 0: "
     "fit_rows: {multiple: =2 * n_window}",
     "true | the class takes longer recordings whole, here they are cut at chunk_length"},
    {"MossTranscribeDiarizeFeatureExtractor",
     "feature_size=80 sampling_rate=16000 hop_length=160 chunk_length=30 n_fft=400 dither==0.0 "
     "padding_value==0.0 padding_side=='right'",
     "", "n_samples nb_max_frames mel_filters window", "",
     "segment: {length: =s(chunk_length), tail: pad}\n"
     "mel: {preset: whisper, sample_rate: =sampling_rate, n_fft: =n_fft, hop: =hop_length, "
     "n_mels: =feature_size, fmax: =none if sampling_rate == 16000 else 8000}",
     ""},
    {"Dots3NoteFeatureExtractor",
     "feature_size=128 sampling_rate=16000 n_fft=400 hop_length=160 chunk_length=60 "
     "chunk_seconds:int?=none dither==0.0 padding_value==0.0 padding_side=='right'",
     "", "n_samples nb_max_frames mel_filters window",
     "n_fft <= 4 * hop_length | n_fft | more zeros behind the recording\n"
     "chunk_length * sampling_rate % (8 * hop_length) == 0 | chunk_length | a window of other rows",
     "fit_samples: {multiple: =8 * hop_length, pad_right: =2 * hop_length}\n"
     "mel: {preset: whisper_large_v3, sample_rate: =sampling_rate, n_fft: =n_fft, hop: "
     "=hop_length, "
     "n_mels: =feature_size, fmax: =none if sampling_rate == 16000 else 8000}\n"
     "fit_rows: {multiple: 8, rest: drop}",
     "true | the class makes windows of chunk_length of longer recordings, here they stay whole"},
    {"VoxtralRealtimeFeatureExtractor",
     "feature_size=128 sampling_rate=16000 hop_length=160 n_fft=400 global_log_mel_max:num?=1.5",
     "center==true", "win_length padding_value padding_side mel_filters window", "",
     "mel: {preset: whisper_large_v3, sample_rate: =sampling_rate, n_fft: =n_fft, hop: "
     "=hop_length, "
     "n_mels: =feature_size, fmax: =none if sampling_rate == 16000 else 8000, "
     "top_db: =80 if global_log_mel_max == none else 'none', "
     "amin: =none if global_log_mel_max == none else max(1e-10, 10 ** (global_log_mel_max - 8))}",
     ""},
    {"ASTFeatureExtractor",
     "sampling_rate=16000 num_mel_bins=128 max_length=1024 do_normalize=true mean=-4.2677393 "
     "std=4.5689974",
     "", "feature_size padding_value padding_side mel_filters window", "",
     "mel: {preset: ast, sample_rate: =sampling_rate, "
     "n_fft: =pow2(int(sampling_rate * 0.001 * 25)), "
     "win_length: =int(sampling_rate * 0.001 * 25), hop: =int(sampling_rate * 0.001 * 10), "
     "n_mels: =num_mel_bins, normalize: ='fixed' if do_normalize else 'none', "
     "norm_mean: =mean if do_normalize else none, norm_std: =2 * std if do_normalize else none}\n"
     "fit_rows: {rows: =max_length, value: =(0 - mean) / (2 * std) if do_normalize else none}",
     ""},
    {"SeamlessM4TFeatureExtractor",
     "feature_size=80 sampling_rate=16000 num_mel_bins=80 stride=2 padding_value=0.0 "
     "padding_side=='right'",
     "do_normalize_per_mel_bins=true pad_to_multiple_of:int?=2", "mel_filters window",
     "feature_size > 1 | feature_size | a class that does not fail\n"
     "stride > 0 | stride | a stride above 0",
     "mel: {preset: kaldi, sample_rate: =sampling_rate, n_mels: =num_mel_bins, "
     "normalize: ='per_feature' if do_normalize_per_mel_bins else none, "
     "norm_eps: =1e-7 if do_normalize_per_mel_bins else none, "
     "norm_eps_to: ='variance' if do_normalize_per_mel_bins else none}\n"
     "if pad_to_multiple_of and pad_to_multiple_of != stride: "
     "fit_rows: {multiple: =pad_to_multiple_of, value: =padding_value if padding_value else none}\n"
     "if stride > 1: stack: {frames: =stride, "
     "tail: ='value' if pad_to_multiple_of == stride else none, "
     "value: =padding_value if padding_value and pad_to_multiple_of == stride else none}",
     ""},
    {"Speech2TextFeatureExtractor",
     "sampling_rate=16000 num_mel_bins=80 dither=0.0 do_ceptral_normalize=true "
     "normalize_means=true normalize_vars=true",
     "", "feature_size padding_value padding_side mel_filters window",
     "normalize_means or not do_ceptral_normalize or not normalize_vars | normalize_means | a "
     "normalize that divides and does not subtract",
     "mel: {preset: kaldi, sample_rate: =sampling_rate, "
     "n_fft: =pow2(int(sampling_rate * 0.001 * 25)), "
     "win_length: =int(sampling_rate * 0.001 * 25), hop: =int(sampling_rate * 0.001 * 10), "
     "n_mels: =num_mel_bins, dither: =none if dither == 0 else dither, "
     "normalize: ='per_feature' if do_ceptral_normalize and normalize_means else none, "
     "norm_eps: =0 if do_ceptral_normalize and normalize_means and normalize_vars else none, "
     "norm_ddof: =0 if do_ceptral_normalize and normalize_means and normalize_vars else none, "
     "norm_variance: =false if do_ceptral_normalize and normalize_means and not normalize_vars "
     "else none}",
     "dither > 0 | dither: noise of melflow's own generator"},
    {"ClapFeatureExtractor",
     "feature_size=64 sampling_rate=48000 hop_length=480 max_length_s=10 fft_window_size=1024 "
     "frequency_min:num=0 frequency_max:num=14000 truncation='fusion' padding='repeatpad'",
     "",
     "top_db padding_value padding_side nb_frequency_bins nb_max_samples mel_filters "
     "mel_filters_slaney",
     "",
     "fit_samples: {length: =s(max_length_s), "
     "pad_mode: =pick(padding, 'repeatpad', 'repeat_whole', 'repeat', 'repeat', 'pad', 'constant')}"
     "\n"
     "mel: {preset: clap, sample_rate: =sampling_rate, n_fft: =fft_window_size, hop: =hop_length, "
     "n_mels: =feature_size, fmin: =frequency_min, fmax: =frequency_max, "
     "mel_scale: =pick(truncation, 'fusion', 'htk', 'rand_trunc', 'slaney'), "
     "norm: =pick(truncation, 'fusion', 'none', 'rand_trunc', 'slaney')}",
     "true | the class takes random parts of recordings longer than max_length_s, here they are "
     "cut "
     "there"},
    {"ClvpFeatureExtractor",
     "feature_size=80 sampling_rate=22050 default_audio_length=6 hop_length=256 n_fft=1024 "
     "mel_norms:list?=none padding_value==0.0 padding_side=='right'",
     "", "chunk_length:int n_samples nb_max_frames mel_filters",
     "mel_norms == none or size(mel_norms) == feature_size | mel_norms | a number for each band",
     "window: {length: =s(default_audio_length)}\n"
     "mel: {preset: tortoise, sample_rate: =sampling_rate, n_fft: =n_fft, hop: =hop_length, "
     "n_mels: =feature_size, normalize: =none if mel_norms == none else 'fixed', "
     "norm_mean: =none if mel_norms == none else 0, norm_std: =mel_norms}",
     ""},
    {"SpeechT5FeatureExtractor",
     "sampling_rate=16000 do_normalize=false num_mel_bins=80 hop_length=16 win_length=64 "
     "win_function='hann_window' fmin:num=80 fmax:num=7600 mel_floor=1e-10",
     "audio_target=false",
     "feature_size padding_value padding_side reduction_factor frame_signal_scale "
     "sample_size sample_stride n_fft n_freqs mel_filters window",
     "pick(win_function, 'hann_window', 'known', 'hann', 'known', 'hamming_window', 'known', "
     "'hamming', 'known', 'boxcar', 'known', 'povey', 'known') == 'known' | win_function | a "
     "window "
     "of these",
     "if not audio_target and do_normalize: normalize_samples: {by: deviation}\n"
     "if not audio_target: samples: {sample_rate: =sampling_rate}\n"
     "if audio_target: mel: {preset: speecht5, sample_rate: =sampling_rate, "
     "n_fft: =pow2(win_length * sampling_rate // 1000), "
     "win_length: =none if pow2(win_length * sampling_rate // 1000) == win_length * sampling_rate "
     "// 1000 else win_length * sampling_rate // 1000, "
     "align: =none if pow2(win_length * sampling_rate // 1000) == win_length * sampling_rate // "
     "1000 else 'left', "
     "hop: =hop_length * sampling_rate // 1000, n_mels: =num_mel_bins, fmin: =fmin, fmax: =fmax, "
     "window: =pick(win_function, 'hann_window', 'hann', 'hann', 'hann', 'hamming_window', "
     "'hamming', 'hamming', 'hamming', 'boxcar', 'boxcar', 'povey', 'povey'), "
     "amin: =mel_floor}",
     "not audio_target | audio_target: false: samples, the model's input; with audio_target: true "
     "mel, its target"},
    {"UnivNetFeatureExtractor",
     "sampling_rate=24000 do_normalize=false num_mel_bins=100 hop_length=256 win_length=1024 "
     "win_function='hann_window' filter_length:int?=1024 fmin=0.0 fmax:num?=none mel_floor=1e-9 "
     "center==false compression_factor=1.0 compression_clip_val=1e-5 "
     "normalize_min=-11.512925148010254 normalize_max=2.3143386840820312",
     "",
     "feature_size padding_value padding_side max_length_s:num num_max_samples "
     "model_in_channels:int "
     "pad_end_length:int n_fft n_freqs mel_filters window",
     "win_length == (filter_length or pow2(win_length)) | win_length | a class that does not fail\n"
     "compression_factor > 0 | compression_factor | a factor above 0",
     "mel: {preset: univnet, sample_rate: =sampling_rate, n_fft: =win_length, hop: =hop_length, "
     "pad: =int((win_length - hop_length) / 2), n_mels: =num_mel_bins, fmin: =fmin, "
     "fmax: =sampling_rate / 2 if fmax == none else fmax, "
     "window: =pick(win_function, 'hann_window', 'hann', 'hann', 'hann', 'hamming_window', "
     "'hamming', 'hamming', 'hamming', 'boxcar', 'boxcar', 'povey', 'povey'), "
     "power_offset: =mel_floor, amin: =compression_clip_val, "
     "normalize: ='fixed' if do_normalize or compression_factor != 1 else none, "
     "norm_mean: =(normalize_min + normalize_max) / 2 - ln(compression_factor) if do_normalize "
     "else none if compression_factor == 1 else 0 - ln(compression_factor), "
     "norm_std: =(normalize_max - normalize_min) / 2 if do_normalize else none if "
     "compression_factor == 1 else 1}",
     "true | the class cuts recordings at max_length_s, here they stay whole; fit_samples before "
     "this node cuts them"},
    {"ParakeetFeatureExtractor",
     "feature_size=80 sampling_rate=16000 hop_length=160 n_fft=512 win_length=400 "
     "preemphasis:num?=0.97",
     "", "padding_value padding_side mel_filters", "n_fft % 2 == 0 | n_fft | an even n_fft",
     "mel: {preset: nemo, sample_rate: =sampling_rate, preemphasis: =preemphasis or 0, "
     "n_fft: =n_fft, win_length: =win_length, hop: =hop_length, n_mels: =feature_size}",
     ""},
    {"CohereAsrFeatureExtractor",
     "feature_size=128 sampling_rate=16000 hop_length=160 n_fft=512 win_length=400 "
     "preemphasis:num?=0.97 dither=0.00001",
     "",
     "padding_value padding_side mel_filters max_audio_clip_s:num overlap_chunk_second:num "
     "min_energy_window_samples:int",
     "dither == 0 | dither | the noise of torch's generator, whose seed is the length; without it: "
     "{file: FILE, dither: 0}\n"
     "n_fft % 2 == 0 | n_fft | an even n_fft",
     "mel: {preset: nemo, sample_rate: =sampling_rate, preemphasis: =preemphasis or 0, "
     "n_fft: =n_fft, win_length: =win_length, hop: =hop_length, n_mels: =feature_size}",
     "true | the class splits recordings longer than max_audio_clip_s at quiet places, here they "
     "stay whole"},
    {"NemotronAsrStreamingFeatureExtractor",
     "feature_size=80 sampling_rate=16000 hop_length=160 n_fft=512 win_length=400 "
     "preemphasis:num?=0.97 mel_filters_dtype=='float32'",
     "center==true", "padding_value padding_side mel_filters",
     "n_fft % 2 == 0 | n_fft | an even n_fft",
     "mel: {preset: nemotron_streaming, sample_rate: =sampling_rate, "
     "preemphasis: =preemphasis or 0, n_fft: =n_fft, win_length: =win_length, hop: =hop_length, "
     "n_mels: =feature_size}",
     ""},
    {"LasrFeatureExtractor",
     "feature_size=128 sampling_rate=16000 hop_length=160 n_fft=512 win_length=400", "",
     "padding_value padding_side mel_filters", "",
     "mel: {preset: lasr, sample_rate: =sampling_rate, n_fft: =n_fft, win_length: =win_length, "
     "hop: =hop_length, n_mels: =feature_size}",
     ""},
    {"Gemma3nAudioFeatureExtractor",
     "feature_size=128 sampling_rate=16000 frame_length_ms=32.0 hop_length_ms=10.0 "
     "min_frequency=125.0 max_frequency=7600.0 preemphasis=0.97 preemphasis_htk_flavor=true "
     "fft_overdrive=true dither==0.0 input_scale_factor=1.0 mel_floor=1e-5 "
     "per_bin_mean:lists?=none per_bin_stddev:lists?=none frame_length:int?=none "
     "hop_length:int?=none fft_length:int?=none padding_value==0.0 padding_side=='right'",
     "pad_to_multiple_of:int?=128", "mel_filters window",
     "per_bin_mean == none or size(per_bin_mean) == feature_size | per_bin_mean | a number for "
     "each band\n"
     "per_bin_stddev == none or size(per_bin_stddev) == feature_size | per_bin_stddev | a number "
     "for each band\n"
     "frame_length == none or frame_length == round(sampling_rate * frame_length_ms / 1000) | "
     "frame_length | frame_length_ms, from which the class computes it: {file: FILE, "
     "frame_length_ms: ...}\n"
     "hop_length == none or hop_length == round(sampling_rate * hop_length_ms / 1000) | "
     "hop_length | hop_length_ms, from which the class computes it: {file: FILE, hop_length_ms: "
     "...}\n"
     "fft_length == none or fft_length == pow2(round(sampling_rate * frame_length_ms / 1000)) * "
     "(2 if fft_overdrive else 1) | fft_length | frame_length_ms and fft_overdrive, from which the "
     "class computes it",
     "if pad_to_multiple_of: fit_samples: {multiple: =pad_to_multiple_of}\n"
     "mel: {sample_rate: =sampling_rate, "
     "input_scale: =none if input_scale_factor == 1 else input_scale_factor, "
     "preemphasis: =none if preemphasis == 0 else preemphasis, "
     "preemphasis_of: =none if preemphasis == 0 else 'frame' if preemphasis_htk_flavor else "
     "'signal', "
     "preemphasis_first: =none if preemphasis == 0 or preemphasis_htk_flavor else 'drop', "
     "n_fft: =pow2(round(sampling_rate * frame_length_ms / 1000)) * (2 if fft_overdrive else 1), "
     "win_length: =round(sampling_rate * frame_length_ms / 1000), "
     "hop: =round(sampling_rate * hop_length_ms / 1000), align: left, center: false, "
     "drop_exact: =preemphasis == 0 or preemphasis_htk_flavor, power: 1, "
     "n_mels: =feature_size, fmin: =min_frequency, fmax: =max_frequency, log: ln, "
     "amin: =mel_floor, "
     "normalize: =none if per_bin_mean == none and per_bin_stddev == none else 'fixed', "
     "norm_mean: =per_bin_mean if per_bin_mean != none else none if per_bin_stddev == none else 0, "
     "norm_std: =per_bin_stddev if per_bin_stddev != none else none if per_bin_mean == none else "
     "1}",
     kCutAt30s},
    {"Gemma4AudioFeatureExtractor",
     "feature_size=128 sampling_rate=16000 frame_length_ms=20.0 hop_length_ms=10.0 "
     "min_frequency=0.0 max_frequency=8000.0 preemphasis=0.0 preemphasis_htk_flavor=true "
     "fft_overdrive=false dither==0.0 input_scale_factor=1.0 mel_floor=0.001 "
     "per_bin_mean:lists?=none per_bin_stddev:lists?=none frame_length:int?=none "
     "hop_length:int?=none fft_length:int?=none padding_value==0.0 padding_side=='right'",
     "", "mel_filters window",
     "as Gemma3nAudioFeatureExtractor, "
     "preemphasis == 0 or preemphasis_htk_flavor | preemphasis_htk_flavor | the sample before each "
     "frame",
     "fit_samples: {pad_left: =round(sampling_rate * frame_length_ms / 1000) // 2}\n"
     "mel: {as Gemma3nAudioFeatureExtractor, amin: 1e-30, log_offset: =mel_floor}",
     kCutAt30s},
    {"GraniteSpeechFeatureExtractor",
     "sampling_rate=16000 n_fft=512 win_length=400 hop_length=160 n_mels=80 "
     "projector_window_size=15 projector_downsample_rate=5 "
     "melspec_kwargs.sample_rate:int?=none melspec_kwargs.n_fft:int?=none "
     "melspec_kwargs.win_length:int?=none melspec_kwargs.hop_length:int?=none "
     "melspec_kwargs.n_mels:int?=none",
     "",
     "feature_size padding_value padding_side "
     "mel_filters",
     "projector_window_size > 0 | projector_window_size | a size above 0\n"
     "projector_downsample_rate > 0 | projector_downsample_rate | a rate above 0\n"
     "melspec_kwargs.sample_rate == none or melspec_kwargs.sample_rate == sampling_rate | "
     "melspec_kwargs.sample_rate | sampling_rate, which the class takes in its place\n"
     "melspec_kwargs.n_fft == none or melspec_kwargs.n_fft == n_fft | melspec_kwargs.n_fft | the "
     "key n_fft, which the class takes in its place: {file: FILE, n_fft: ...}\n"
     "melspec_kwargs.win_length == none or melspec_kwargs.win_length == win_length | "
     "melspec_kwargs.win_length | the key win_length, which the class takes in its place\n"
     "melspec_kwargs.hop_length == none or melspec_kwargs.hop_length == hop_length | "
     "melspec_kwargs.hop_length | the key hop_length, which the class takes in its place\n"
     "melspec_kwargs.n_mels == none or melspec_kwargs.n_mels == n_mels | melspec_kwargs.n_mels | "
     "the key n_mels, which the class takes in its place",
     "mel: {preset: torchaudio, sample_rate: =sampling_rate, n_fft: =n_fft, "
     "win_length: =win_length, hop: =hop_length, n_mels: =n_mels, log: log10, amin: 1e-10, "
     "top_db: 80, normalize: fixed, norm_mean: -4, norm_std: 4}\n"
     "stack: {frames: 2}",
     ""},
    {"InklingFeatureExtractor",
     "feature_size=80 sampling_rate=16000 audio_token_duration_s=0.05 window_size_multiplier=2.0 "
     "n_fft:int?=none padding_value==0.0 padding_side=='right' hop_length:int?=none "
     "window_size:int?=none",
     "", "mel_filters window",
     "abs(audio_token_duration_s * sampling_rate - round(audio_token_duration_s * sampling_rate)) "
     "<= 1e-6 | audio_token_duration_s | a whole number of samples at sampling_rate\n"
     "hop_length == none or hop_length == round(audio_token_duration_s * sampling_rate) | "
     "hop_length | audio_token_duration_s and sampling_rate, from which the class computes it\n"
     "window_size == none or window_size == round(audio_token_duration_s * window_size_multiplier "
     "* sampling_rate) | window_size | window_size_multiplier and sampling_rate, from which the "
     "class computes it",
     "fit_samples: {multiple: =round(audio_token_duration_s * sampling_rate), "
     "pad_left: =max(0, (n_fft or round(audio_token_duration_s * window_size_multiplier * "
     "sampling_rate)) - round(audio_token_duration_s * sampling_rate))}\n"
     "mel: {sample_rate: =sampling_rate, n_fft: =n_fft or round(audio_token_duration_s * "
     "window_size_multiplier * sampling_rate), "
     "win_length: =none if not n_fft else round(audio_token_duration_s * window_size_multiplier * "
     "sampling_rate), "
     "hop: =round(audio_token_duration_s * sampling_rate), center: false, power: 1, power_floor: "
     "1e-10, n_mels: =feature_size, mel_scale: slaney, norm: slaney, log: log10}",
     ""},
    {"Phi4MultimodalFeatureExtractor",
     "feature_size=80 sampling_rate=16000 hop_length=160 n_fft=512 win_length=400 "
     "preemphasis=0.97 mel_min_frequency:num=0 mel_max_frequency:num=7690 audio_compression_rate=8 "
     "audio_downsample_rate=1 audio_feat_stride=1",
     "", "padding_value padding_side mel_filters",
     "audio_compression_rate > 0 | audio_compression_rate | a rate above 0\n"
     "audio_downsample_rate > 0 | audio_downsample_rate | a rate above 0\n"
     "audio_feat_stride > 0 | audio_feat_stride | a stride above 0",
     "mel: {preset: phi4, sample_rate: =sampling_rate, preemphasis: =preemphasis, n_fft: =n_fft, "
     "win_length: =win_length, hop: =hop_length, n_mels: =feature_size, "
     "fmin: =mel_min_frequency, fmax: =mel_max_frequency}",
     ""},
    {"FunAsrNanoFeatureExtractor",
     "feature_size=80 sampling_rate=16000 frame_length:num=25 frame_shift:num=10 num_frames_lfr=7 "
     "stride_lfr=6 window='hamming'",
     "", "padding_value padding_side",
     "num_frames_lfr > 0 | num_frames_lfr | a number above 0\n"
     "stride_lfr > 0 | stride_lfr | a number above 0",
     "mel: {preset: kaldi, sample_rate: =sampling_rate, input_scale: 1, "
     "n_fft: =pow2(int(sampling_rate * 0.001 * frame_length)), "
     "win_length: =int(sampling_rate * 0.001 * frame_length), "
     "hop: =int(sampling_rate * 0.001 * frame_shift), n_mels: =feature_size, "
     "window: =pick(window, 'hamming', 'hamming', 'hanning', 'hann', 'povey', 'povey', "
     "'rectangular', 'boxcar', 'blackman', 'blackman')}\n"
     "if num_frames_lfr > 1 or stride_lfr > 1: stack: {frames: =num_frames_lfr, hop: =stride_lfr, "
     "left: =(num_frames_lfr - 1) // 2, tail: replicate}",
     ""},
    {"NeuCodecFeatureExtractor",
     "sampling_rate=16000 padding_value=1.0 hop_length=320 "
     "padding_side=='right'",
     "", "feature_size stride num_mel_bins frame_length frame_shift", "",
     "fit_samples: {extra: 1, multiple: =hop_length}\n"
     "mel: {preset: wenet_w2vbert, sample_rate: =sampling_rate}\n"
     "stack: {frames: 2, tail: value, value: =padding_value}",
     ""},
    {"Xcodec2FeatureExtractor",
     "sampling_rate=16000 padding_value=1.0 hop_length=320 "
     "padding_side=='right'",
     "", "feature_size stride num_mel_bins frame_length frame_shift", "",
     "fit_samples: {extra: 1, multiple: =hop_length, pad_left: =hop_length // 2, "
     "pad_right: =hop_length // 2}\n"
     "mel: {preset: wenet_w2vbert, sample_rate: =sampling_rate}\n"
     "stack: {frames: 2, tail: value, value: =padding_value}",
     ""},
    {"Wav2Vec2FeatureExtractor", "sampling_rate=16000 do_normalize=true", "",
     "feature_size padding_value padding_side", "",
     "if do_normalize: normalize_samples: {by: deviation}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"OmniASRFeatureExtractor", "feature_size==1 sampling_rate=16000 do_normalize=true", "",
     "padding_value padding_side", "",
     "if do_normalize: normalize_samples: {eps: 1e-5}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"EncodecFeatureExtractor",
     "feature_size==1 sampling_rate=24000 chunk_length_s:num?=none overlap:num?=none "
     "padding_value==0.0 padding_side=='right'",
     "", "", "",
     "if chunk_length_s != none and overlap != none: fit_samples: {"
     "multiple: =max(1, int((1 - (overlap or 0)) * int((chunk_length_s or 0) * sampling_rate))), "
     "pad_right: =int((chunk_length_s or 0) * sampling_rate) - max(1, int((1 - (overlap or 0)) * "
     "int((chunk_length_s or 0) * sampling_rate)))}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"KyutaiSpeechToTextFeatureExtractor",
     "feature_size==1 sampling_rate=24000 chunk_length_s:num?==none overlap:num?=none "
     "audio_delay_seconds=0.0 audio_silence_prefix_seconds=0.0",
     "", "padding_value padding_side", "",
     "fit_samples: {pad_left: =int(audio_silence_prefix_seconds * sampling_rate), "
     "pad_right: =int((audio_delay_seconds + 1) * sampling_rate)}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"DacFeatureExtractor",
     "feature_size==1 sampling_rate=16000 hop_length=512 padding_value==0.0 padding_side=='right'",
     "", "", "",
     "fit_samples: {multiple: =hop_length}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"DiaFeatureExtractor",
     "feature_size=1 sampling_rate=16000 hop_length=512 padding_value==0.0 padding_side=='right'",
     "", "",
     "feature_size == 1 or feature_size == 2 | feature_size | one channel, or the mean of 2",
     "fit_samples: {multiple: =hop_length}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"PeAudioFeatureExtractor", "feature_size==1 sampling_rate=48000 hop_length=1920", "",
     "padding_value padding_side", "",
     "fit_samples: {multiple: =hop_length, pad_mode: reflect}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"MuseSparkFeatureExtractor",
     "feature_size==1 sampling_rate=24000 samples_per_token=1920 padding_value==0.0 "
     "padding_side=='right'",
     "", "", "",
     "fit_samples: {multiple: =samples_per_token}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"PocketTTSFeatureExtractor",
     "feature_size==1 sampling_rate=24000 pad_to_multiple_of:int?=1920 end_on_pause=true "
     "padding_value==0.0 "
     "padding_side=='right'",
     "",
     "frame_size:int pause_duration:num fade_out_duration:num silence_floor_db:num "
     "analysis_frame_duration:num",
     "not end_on_pause | end_on_pause | an end at the last loud stretch, with a fade and a pause; "
     "without: {file: FILE, end_on_pause: false}",
     "if pad_to_multiple_of: fit_samples: {multiple: =pad_to_multiple_of}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"WavTokenizerFeatureExtractor",
     "feature_size==1 sampling_rate=24000 normalize_audio=false target_peak_dB_FS=-3.0", "",
     "padding_value padding_side hop_length:int", "",
     "if normalize_audio: normalize_samples: {by: peak, level: =dB(target_peak_dB_FS)}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"VibeVoiceAcousticTokenizerFeatureExtractor",
     "feature_size==1 sampling_rate=24000 normalize_audio=true target_dB_FS:num=-25 eps=1e-6 "
     "pad_to_multiple_of:int?=3200 padding_value==0.0 padding_side=='right'",
     "", "", "",
     "if normalize_audio: normalize_samples: {by: rms, level: =dB(target_dB_FS), limit: true, "
     "eps: =eps}\n"
     "if pad_to_multiple_of: fit_samples: {multiple: =pad_to_multiple_of}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
    {"Gemma4UnifiedAudioFeatureExtractor", "sampling_rate=16000 audio_samples_per_token=640", "",
     "feature_size padding_value padding_side", "",
     "segment: {length: =audio_samples_per_token, tail: pad}\n"
     "samples: {sample_rate: =sampling_rate}",
     ""},
};

constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
    {"GraniteSpeech5FeatureExtractor",
     "no options give its number of frames, and the derivatives of its last one"},
    {"MusicgenMelodyFeatureExtractor", "no options give chroma"},
    {"Pop2PianoFeatureExtractor",
     "it cuts recordings at beats that essentia finds; of one section the preset pop2piano gives "
     "its values"},
};

}  // namespace

constinit const FrontEndFamily kTransformers{
    "transformers",
    "transformers 5.24.0",
    "feature_extractor_type processor_class return_attention_mask transformers_version",
    kClasses,
    kRefused,
    "librosa | load_audio of transformers, by soundfile",
};

}  // namespace melflow
