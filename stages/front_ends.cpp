#include "stages/front_ends.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace melflow {
namespace {

// Constants are those of the code named as the source, in evaluation, without dither.
constexpr FrontEnd kFrontEnds[] = {
    // Those that others change: every option that is not the stage's default.
    {"librosa", "librosa.feature.melspectrogram: power", "librosa 0.10.2, feature.melspectrogram",
     "mel: {sample_rate: 22050, n_fft: 2048, hop: 512, pad_mode: constant, mel_scale: slaney, "
     "norm: slaney}",
     false},
    {"torchaudio", "torchaudio.transforms.MelSpectrogram: power",
     "torchaudio 2.11.1, transforms.MelSpectrogram",
     "mel: {sample_rate: 16000, n_fft: 400, hop: 200, bin_hz: torchaudio}", false},
    {"kaldi", "Kaldi's compute-fbank-feats without dither, also kaldi-native-fbank",
     "kaldi-native-fbank 1.22.4, OnlineFbank",
     "mel: {sample_rate: 16000, input_scale: 32768, preemphasis: 0.97, preemphasis_of: frame, "
     "remove_dc: true, n_fft: 512, win_length: 400, hop: 160, align: left, window: povey, "
     "periodic: false, center: false, snip_edges: true, pad_mode: symmetric, n_mels: 23, "
     "fmin: 20, fmax: 0, mel_scale: kaldi, triangles: mel, log: ln, amin: 1.1920928955078125e-07}"},
    {"kaldi_htk", "Kaldi's features as HTK makes them: Hamming window, energy last",
     "kaldi-native-fbank 1.22.4, OnlineFbank",
     "mel: {preset: kaldi, window: hamming, remove_dc: false, fmin: 0, htk_mode: kaldi, "
     "use_energy: true, htk_compat: true}"},
    {"whisper", "Whisper's log_mel_spectrogram, 80 bands",
     "transformers 5.24.0, WhisperFeatureExtractor",
     "segment: {length: 30s, tail: pad}\n"
     "mel: {sample_rate: 16000, n_fft: 400, hop: 160, drop_last: true, n_mels: 80, "
     "mel_scale: slaney, norm: slaney, log: log10, top_db: 80, normalize: fixed, norm_mean: -4, "
     "norm_std: 4}"},
    {"whisper_large_v3", "Whisper's log_mel_spectrogram, 128 bands",
     "transformers 5.24.0, WhisperFeatureExtractor(feature_size=128)",
     "segment: {length: 30s, tail: pad}\nmel: {preset: whisper, n_mels: 128}"},
    {"nemo", "NeMo's AudioToMelSpectrogramPreprocessor in evaluation, 80 features",
     "NeMo 3.0.0, FilterbankFeatures",
     "mel: {sample_rate: 16000, preemphasis: 0.97, n_fft: 512, win_length: 400, hop: 160, "
     "periodic: false, pad_mode: constant, drop_last: true, n_mels: 80, mel_scale: slaney, "
     "norm: slaney, log: ln, amin: 1e-30, log_offset: 5.9604644775390625e-08, "
     "normalize: per_feature, norm_eps: 1e-5}"},
    {"speechbrain", "speechbrain.lobes.features.Fbank", "speechbrain 1.1.2, lobes.features.Fbank",
     "mel: {sample_rate: 16000, n_fft: 400, hop: 160, window: hamming, pad_mode: constant, "
     "n_mels: 40, triangles: left_width, bin_hz: speechbrain, log: db, top_db: 80}"},
    {"hifigan", "HiFi-GAN's mel_spectrogram for 22.05 kHz",
     "HiFi-GAN's meldataset.py, mel_spectrogram",
     "mel: {sample_rate: 22050, n_fft: 1024, hop: 256, center: false, pad: 384, power: 1, "
     "power_offset: 1e-9, n_mels: 80, fmax: 8000, mel_scale: slaney, norm: slaney, log: ln, "
     "amin: 1e-5}"},
    {"ast", "Audio Spectrogram Transformer, normalised by AudioSet's statistics",
     "transformers 5.24.0, ASTFeatureExtractor, before its rows are filled up",
     "mel: {preset: kaldi, input_scale: 1, window: hann, n_mels: 128, normalize: fixed, "
     "norm_mean: -4.2677393, norm_std: 9.1379948}"},

    {"librosa_mfcc", "librosa.feature.mfcc", "librosa 0.11.0, feature.mfcc",
     "mel: {preset: librosa, log: db, top_db: 80}\n"
     "mfcc: {n_mfcc: 20}",
     false},
    {"torchaudio_mfcc", "torchaudio.transforms.MFCC", "torchaudio 2.11.0, transforms.MFCC",
     "mel: {preset: torchaudio, log: db, top_db: 80}\n"
     "mfcc: {n_mfcc: 40}",
     false},
    {"kaldi_mfcc", "Kaldi's compute-mfcc-feats, 13 cepstra with energy",
     "torchaudio 2.11.0, compliance.kaldi.mfcc",
     "mel: {preset: kaldi, use_energy: true}\n"
     "mfcc: {n_mfcc: 13, lifter: 22, lifter_style: kaldi}"},
    {"kaldi_mfcc_hires", "Kaldi's conf/mfcc_hires.conf, 40 cepstra",
     "torchaudio 2.11.0, compliance.kaldi.mfcc",
     "mel: {preset: kaldi, n_mels: 40, fmax: -400}\n"
     "mfcc: {n_mfcc: 40, lifter: 22, lifter_style: kaldi}"},
    {"kaldi_voxceleb", "Kaldi's VoxCeleb recipe: 30 cepstra, mean over 3 s subtracted",
     "torchaudio 2.11.0, compliance.kaldi.mfcc, functional.sliding_window_cmn",
     "mel: {preset: kaldi, n_mels: 30, fmax: 7600, snip_edges: false, use_energy: true}\n"
     "mfcc: {n_mfcc: 30, lifter: 22, lifter_style: kaldi}\n"
     "sliding_cmvn: {window: 300, center: true}"},
    {"wenet", "WeNet, AISHELL: Kaldi's filter banks, 80 bands", "WeNet's compute_fbank",
     "mel: {preset: kaldi, n_mels: 80}"},
    {"sherpa_onnx", "sherpa-onnx, its Zipformer models", "sherpa-onnx's FeatureExtractorConfig",
     "mel: {preset: kaldi, input_scale: 1, n_mels: 80, fmax: -400, snip_edges: false}"},
    {"lhotse", "Lhotse's and icefall's Fbank", "lhotse 1.33.0, Wav2LogFilterBank",
     "mel: {preset: kaldi, input_scale: 1, n_mels: 80, fmax: -400, snip_edges: false}"},
    {"lhotse_mfcc", "Lhotse's Mfcc", "lhotse 1.33.0, Wav2MFCC",
     "mel: {preset: kaldi, input_scale: 1, fmax: -400, snip_edges: false}\n"
     "mfcc: {n_mfcc: 13, lifter: 22, lifter_style: kaldi}"},
    {"lhotse_log_spectrogram", "Lhotse's LogSpectrogram", "lhotse 1.33.0, Wav2LogSpec",
     "mel: {preset: kaldi, input_scale: 1, snip_edges: false, output: spectrogram, amin: 1e-30, "
     "log_offset: 1e-15}"},
    {"funasr_lfr76", "FunASR's WavFrontend: Paraformer, SenseVoice",
     "FunASR 1.4.16, WavFrontend(lfr_m=7, lfr_n=6)",
     "mel: {preset: kaldi, n_mels: 80, window: hamming}\n"
     "stack: {frames: 7, hop: 6, left: 3, tail: replicate}"},
    {"funasr_lfr51", "FunASR's WavFrontend: FSMN-VAD",
     "FunASR 1.4.16, WavFrontend(lfr_m=5, lfr_n=1)",
     "mel: {preset: kaldi, n_mels: 80, window: hamming}\n"
     "stack: {frames: 5, hop: 1, left: 2, tail: replicate}"},
    {"fun_asr_nano", "Fun-ASR-Nano", "transformers 5.24.0, FunAsrNanoFeatureExtractor",
     "mel: {preset: kaldi, input_scale: 1, n_mels: 80, window: hamming}\n"
     "stack: {frames: 7, hop: 6, left: 3, tail: replicate}"},
    {"wespeaker", "WeSpeaker's ResNet34, ECAPA and CAM++, pyannote's embeddings",
     "WeSpeaker's compute_fbank",
     "mel: {preset: kaldi, n_mels: 80, window: hamming, normalize: per_feature, norm_variance: "
     "false}"},
    {"campplus", "CAM++ of 3D-Speaker and CosyVoice", "3D-Speaker's FBank",
     "mel: {preset: kaldi, input_scale: 1, n_mels: 80, normalize: per_feature, norm_variance: "
     "false}"},
    {"speech_to_text", "Speech2Text", "transformers 5.24.0, Speech2TextFeatureExtractor",
     "mel: {preset: kaldi, n_mels: 80, normalize: per_feature, norm_eps: 0, norm_ddof: 0}"},
    {"seamless", "SeamlessM4T v1 and v2, Wav2Vec2-BERT",
     "transformers 5.24.0, SeamlessM4TFeatureExtractor",
     "mel: {preset: kaldi, n_mels: 80, normalize: per_feature, norm_eps: 1e-7, norm_eps_to: "
     "variance}\n"
     "stack: {frames: 2, tail: value}"},
    {"wenet_w2vbert", "WeNet's W2v-BERT: as seamless, frame by frame",
     "transformers 5.24.0, SeamlessM4TFeatureExtractor(stride=1)",
     "mel: {preset: kaldi, n_mels: 80, normalize: per_feature, norm_eps: 1e-7, norm_eps_to: "
     "variance}"},
    {"ast_1024", "Audio Spectrogram Transformer, filled up to 1024 rows",
     "transformers 5.24.0, ASTFeatureExtractor",
     "mel: {preset: ast}\n"
     "fit_rows: {rows: 1024, value: 0.46703237141211344}"},
    {"eat", "EAT, AudioMAE, SSAST: 1024 rows", "EAT's loader",
     "mel: {preset: ast, norm_mean: -4.268, norm_std: 9.138}\n"
     "fit_rows: {rows: 1024, value: 0.46706062595753996}"},
    {"beats", "BEATs", "BEATs' preprocess",
     "mel: {preset: kaldi, n_mels: 128, normalize: fixed, norm_mean: 15.41663, norm_std: "
     "13.11164}"},
    {"qwen2_5_omni", "Qwen2.5-Omni, Qwen3-Omni",
     "transformers 5.24.0, WhisperFeatureExtractor(feature_size=128, chunk_length=300)",
     "segment: {length: 300s, tail: pad}\n"
     "mel: {preset: whisper_large_v3}"},
    {"voxtral_realtime", "Voxtral Realtime", "transformers 5.24.0, VoxtralRealtimeFeatureExtractor",
     "mel: {preset: whisper_large_v3, top_db: none, amin: 3.1622776601683795e-07}"},
    {"granite_speech", "Granite Speech", "transformers 5.24.0, GraniteSpeechFeatureExtractor",
     "mel: {preset: torchaudio, n_fft: 512, win_length: 400, hop: 160, n_mels: 80, log: log10, "
     "amin: 1e-10, top_db: 80, normalize: fixed, norm_mean: -4, norm_std: 4}\n"
     "stack: {frames: 2}"},
    {"parakeet", "Parakeet-TDT, Canary 1B Flash, Cohere Transcribe: NeMo with 128 features",
     "NeMo 3.0.0, FilterbankFeatures", "mel: {preset: nemo, n_mels: 128}"},
    {"nemotron_streaming", "NeMo's cache-aware streaming models, Nemotron: without normalisation",
     "transformers 5.24.0, NemotronAsrStreamingFeatureExtractor",
     "mel: {preset: nemo, normalize: none}"},
    {"quartznet", "QuartzNet: NeMo with 64 features", "NeMo 3.0.0, FilterbankFeatures",
     "mel: {preset: nemo, n_mels: 64, win_length: 320}"},
    {"nemo_pad16", "NeMo's class default: a multiple of 16 rows",
     "NeMo 3.0.0, FilterbankFeatures(pad_to=16)",
     "mel: {preset: nemo}\n"
     "fit_rows: {extra: 1, multiple: 16}"},
    {"fastpitch", "FastPitch and HiFi-GAN of NeMo, 22.05 kHz", "NeMo 3.0.0, FilterbankFeatures",
     "mel: {sample_rate: 22050, n_fft: 1024, hop: 256, periodic: false, pad_mode: constant, "
     "drop_last: true, power: 1, n_mels: 80, fmax: 8000, mel_scale: slaney, norm: slaney, log: "
     "ln, amin: 1e-30, log_offset: 1e-5}"},
    {"lasr", "LASR, MedASR", "transformers 5.24.0, LasrFeatureExtractor",
     "mel: {sample_rate: 16000, n_fft: 512, win_length: 400, hop: 160, align: left, periodic: "
     "false, center: false, n_mels: 128, fmin: 125, fmax: 7500, mel_scale: kaldi, triangles: mel, "
     "log: ln, amin: 1e-5}"},
    {"phi4", "Phi-4 Multimodal", "transformers 5.24.0, Phi4MultimodalFeatureExtractor",
     "mel: {preset: kaldi, remove_dc: false, window: hamming, n_mels: 80, fmin: 0, fmax: 7690, "
     "amin: 1}"},
    {"espnet", "ESPnet's DefaultFrontend", "ESPnet's Stft and LogMel",
     "mel: {sample_rate: 16000, n_fft: 512, hop: 128, n_mels: 80, mel_scale: slaney, norm: "
     "slaney, log: ln}"},
    {"speechbrain_ecapa", "SpeechBrain's ECAPA-TDNN and language identification",
     "speechbrain 1.1.2, lobes.features.Fbank", "mel: {preset: speechbrain, n_mels: 80}"},
    {"speechbrain_xvector", "SpeechBrain's x-vectors", "speechbrain 1.1.2, lobes.features.Fbank",
     "mel: {preset: speechbrain, n_mels: 24}"},
    {"speechbrain_asr", "SpeechBrain's Conformer and Transformer",
     "speechbrain 1.1.2, lobes.features.Fbank",
     "mel: {preset: speechbrain, n_fft: 512, n_mels: 80}"},
    {"speechbrain_mfcc", "SpeechBrain's MFCC with derivatives and context",
     "speechbrain 1.1.2, lobes.features.MFCC",
     "mel: {preset: speechbrain, n_mels: 23}\n"
     "mfcc: {n_mfcc: 20}\n"
     "deltas: {order: 2, method: regression}\n"
     "stack: {frames: 11, hop: 1, left: 5, head: value, tail: value, order: band_major}"},
    {"speecht5", "SpeechT5's target", "transformers 5.24.0, SpeechT5FeatureExtractor(audio_target)",
     "mel: {sample_rate: 16000, n_fft: 1024, hop: 256, power: 1, n_mels: 80, fmin: 80, fmax: "
     "7600, mel_scale: slaney, norm: slaney, log: log10}"},
    {"pop2piano", "Pop2Piano, of one section",
     "transformers 5.24.0, Pop2PianoFeatureExtractor.mel_spectrogram",
     "mel: {sample_rate: 22050, n_fft: 4096, hop: 1024, n_mels: 512, fmin: 10, fmax: 11025, log: "
     "ln, amin: 1e-6}"},
    {"clap", "CLAP of Transformers, recordings padded with zeros",
     "transformers 5.24.0, ClapFeatureExtractor(padding=pad)",
     "segment: {length: 10s, tail: pad}\n"
     "mel: {sample_rate: 48000, n_fft: 1024, hop: 480, n_mels: 64, fmax: 14000, log: db}"},
    {"laion_clap", "LAION-CLAP's HTSAT, of samples that it does not round to 16 bits",
     "torchlibrosa 0.1.0, as LAION-CLAP calls it",
     "mel: {sample_rate: 48000, n_fft: 1024, hop: 480, n_mels: 64, fmin: 50, fmax: 14000, "
     "mel_scale: slaney, norm: slaney, log: db}"},
    {"msclap", "MS-CLAP 2023", "torchlibrosa 0.1.0, as MS-CLAP calls it",
     "mel: {sample_rate: 44100, n_fft: 1024, hop: 320, n_mels: 64, fmin: 50, fmax: 8000, "
     "mel_scale: slaney, norm: slaney, log: db}"},
    {"panns", "PANNs: CNN14", "torchlibrosa 0.1.0",
     "mel: {sample_rate: 32000, n_fft: 1024, hop: 320, n_mels: 64, fmin: 50, fmax: 14000, "
     "mel_scale: slaney, norm: slaney, log: db}"},
    {"dasheng", "Dasheng, CED", "Dasheng's front end",
     "mel: {preset: torchaudio, n_fft: 512, hop: 160, n_mels: 64, log: db, top_db: 120}"},
    {"vggish", "VGGish", "torchvggish 0.2, mel_features.py",
     "mel: {sample_rate: 16000, n_fft: 512, win_length: 400, hop: 160, align: left, center: "
     "false, power: 1, n_mels: 64, fmin: 125, fmax: 7500, mel_scale: kaldi, triangles: mel, log: "
     "ln, amin: 1e-30, log_offset: 0.01}"},
    {"yamnet", "YAMNet", "YAMNet's features.py", "mel: {preset: vggish, log_offset: 0.001}"},
    {"perch", "Perch: chirp's MelSpectrogram", "chirp's frontend.py, jax.scipy.signal.stft",
     "mel: {sample_rate: 32000, input_scale: 0.0009765625, n_fft: 2048, hop: 320, pad_mode: "
     "constant, drop_exact: true, power: 1, n_mels: 160, fmin: 60, fmax: 10000, mel_scale: kaldi, "
     "triangles: mel, log: ln, amin: 0.01, normalize: fixed, norm_mean: 0, norm_std: 10}"},
    {"resemblyzer", "Resemblyzer", "Resemblyzer 0.1.4, wav_to_mel_spectrogram",
     "mel: {preset: librosa, sample_rate: 16000, n_fft: 400, hop: 160, n_mels: 40}"},
    {"univnet", "UnivNet", "transformers 5.24.0, UnivNetFeatureExtractor",
     "mel: {preset: hifigan, sample_rate: 24000, n_mels: 100, fmax: 12000}"},
    {"bigvgan_24khz", "BigVGAN, 24 kHz", "BigVGAN's meldataset.py",
     "mel: {preset: hifigan, sample_rate: 24000, n_mels: 100, fmax: 12000}"},
    {"bigvgan_44khz", "BigVGAN v2, 44.1 kHz", "BigVGAN's meldataset.py",
     "mel: {preset: hifigan, sample_rate: 44100, n_fft: 2048, hop: 512, pad: 768, n_mels: 128, "
     "fmax: 0}"},
    {"cosyvoice2", "CosyVoice 2 and 3", "Matcha-TTS' audio.py, as CosyVoice 2 sets it",
     "mel: {preset: hifigan, sample_rate: 24000, n_fft: 1920, hop: 480, pad: 720}"},
    {"melgan", "MelGAN", "MelGAN's Audio2Mel",
     "mel: {preset: hifigan, power_offset: 0, fmax: 0, log: log10}"},
    {"tacotron2", "Tacotron 2, WaveGlow", "Tacotron 2's layers.py",
     "mel: {sample_rate: 22050, n_fft: 1024, hop: 256, power: 1, n_mels: 80, fmax: 8000, "
     "mel_scale: slaney, norm: slaney, log: ln, amin: 1e-5}"},
    {"vocos", "Vocos", "Vocos' feature_extractors.py",
     "mel: {sample_rate: 24000, n_fft: 1024, hop: 256, power: 1, n_mels: 100, log: ln, amin: "
     "1e-7}"},
    {"f5_tts", "F5-TTS", "F5-TTS' modules.py", "mel: {preset: vocos, amin: 1e-5}"},
    {"tortoise", "Tortoise, XTTS' GPT, before mel_norms", "Tortoise's TorchMelSpectrogram",
     "mel: {sample_rate: 22050, n_fft: 1024, hop: 256, n_mels: 80, fmax: 8000, norm: slaney, log: "
     "ln, amin: 1e-5}"},
    {"clvp", "CLVP", "transformers 5.24.0, ClvpFeatureExtractor",
     "segment: {length: 6s, tail: pad}\n"
     "mel: {preset: tortoise}"},
    {"parallel_wavegan", "ParallelWaveGAN, 24 kHz", "ParallelWaveGAN's logmelfilterbank",
     "mel: {sample_rate: 24000, n_fft: 2048, win_length: 1200, hop: 300, power: 1, n_mels: 80, "
     "fmin: 80, fmax: 7600, mel_scale: slaney, norm: slaney, log: log10}"},
    {"wav2vec2", "Wav2Vec2, HuBERT, WavLM, UniSpeech, MMS, data2vec, SEW, MERT: samples",
     "transformers 5.24.0, Wav2Vec2FeatureExtractor",
     "normalize_samples: {by: deviation}\n"
     "samples: {sample_rate: 16000}"},
    {"omniasr", "OmniASR: samples", "transformers 5.24.0, OmniASRFeatureExtractor",
     "normalize_samples: {eps: 1e-5}\n"
     "samples: {sample_rate: 16000}"},
    {"moonshine", "Moonshine, Wav2Vec2 Base: samples as they are",
     "transformers 5.24.0, Wav2Vec2FeatureExtractor(do_normalize=False)",
     "samples: {sample_rate: 16000}"},
    {"encodec", "EnCodec, Mimi, CSM: samples as they are",
     "transformers 5.24.0, EncodecFeatureExtractor", "samples: {sample_rate: 24000}"},
    {"dac", "DAC, Dia, Higgs Audio: samples, a multiple of 512",
     "transformers 5.24.0, DacFeatureExtractor",
     "fit_samples: {multiple: 512}\n"
     "samples: {sample_rate: 16000}"},
    {"kyutai_stt", "Kyutai's speech to text: samples, silence before and behind",
     "transformers 5.24.0, KyutaiSpeechToTextFeatureExtractor",
     "fit_samples: {pad_left: 1s, pad_right: 3500ms}\n"
     "samples: {sample_rate: 24000}"},
    {"vibevoice", "VibeVoice: samples at -25 dB, a multiple of 3200",
     "transformers 5.24.0, VibeVoiceAcousticTokenizerFeatureExtractor",
     "normalize_samples: {by: rms, level: -25dB, limit: true}\n"
     "fit_samples: {multiple: 3200}\n"
     "samples: {sample_rate: 24000}"},
    {"pe_audio", "Perception Encoder Audio: samples, a multiple of 1920",
     "transformers 5.24.0, PeAudioFeatureExtractor",
     "fit_samples: {multiple: 1920, pad_mode: reflect}\n"
     "samples: {sample_rate: 48000}"},
    {"neucodec", "NeuCodec", "transformers 5.24.0, NeuCodecFeatureExtractor",
     "fit_samples: {extra: 1, multiple: 320}\n"
     "mel: {preset: wenet_w2vbert}\n"
     "stack: {frames: 2, tail: value, value: 1}"},
    {"xcodec2", "Xcodec 2", "transformers 5.24.0, Xcodec2FeatureExtractor",
     "fit_samples: {extra: 1, multiple: 320, pad_left: 160, pad_right: 160}\n"
     "mel: {preset: wenet_w2vbert}\n"
     "stack: {frames: 2, tail: value, value: 1}"},
    {"dots3", "Dots3, recordings up to 60 s", "transformers 5.24.0, Dots3NoteFeatureExtractor",
     "fit_samples: {multiple: 1280, pad_right: 320}\n"
     "mel: {preset: whisper_large_v3}\n"
     "fit_rows: {multiple: 8, rest: drop}"},
    {"gemma3n", "Gemma 3n", "transformers 5.24.0, Gemma3nAudioFeatureExtractor",
     "fit_samples: {multiple: 128}\n"
     "mel: {sample_rate: 16000, preemphasis: 0.97, preemphasis_of: frame, n_fft: 1024, "
     "win_length: 512, hop: 160, align: left, center: false, drop_exact: true, power: 1, "
     "n_mels: 128, fmin: 125, fmax: 7600, log: ln, amin: 1e-5}"},
    {"gemma4", "Gemma 4, the rows that its mask keeps",
     "transformers 5.24.0, Gemma4AudioFeatureExtractor",
     "fit_samples: {pad_left: 160}\n"
     "mel: {sample_rate: 16000, n_fft: 512, win_length: 320, hop: 160, align: left, center: "
     "false, drop_exact: true, power: 1, n_mels: 128, log: ln, amin: 1e-30, log_offset: 0.001}"},
    {"inkling", "Inkling", "transformers 5.24.0, InklingFeatureExtractor",
     "fit_samples: {multiple: 800, pad_left: 800}\n"
     "mel: {sample_rate: 16000, n_fft: 1600, hop: 800, center: false, power: 1, power_floor: "
     "1e-10, n_mels: 80, mel_scale: slaney, norm: slaney, log: log10}"},
    {"clap_repeatpad",
     "CLAP of Transformers as it is by default: whole copies up to 10 s, then zeros",
     "transformers 5.24.0, ClapFeatureExtractor",
     "fit_samples: {length: 10s, pad_mode: repeat_whole}\n"
     "mel: {preset: clap}"},
    {"clap_rand_trunc", "The same with truncation rand_trunc, whose filters are others",
     "transformers 5.24.0, ClapFeatureExtractor(truncation=rand_trunc)",
     "fit_samples: {length: 10s, pad_mode: repeat_whole}\n"
     "mel: {preset: clap, mel_scale: slaney, norm: slaney}"},
    {"ecapa_tdnn", "ECAPA-TDNN of TaoRuijie and clova, XTTS' speaker encoder",
     "ECAPA-TDNN's model.py",
     "mel: {sample_rate: 16000, preemphasis: 0.97, preemphasis_first: reflect, n_fft: 512, "
     "win_length: 400, hop: 160, window: hamming, n_mels: 80, fmin: 20, fmax: 7600, log: ln, "
     "amin: 1e-30, log_offset: 1e-6, normalize: per_feature, norm_variance: false}"},
    {"emformer_rnnt", "torchaudio's Emformer RNN-T pipelines, before their global statistics",
     "torchaudio 2.11.0, RNNTBundle",
     "mel: {preset: torchaudio, input_scale: 32767, hop: 160, n_mels: 80, log: piecewise}"},
    {"passt", "PaSST, EfficientAT", "hear21passt 0.0.26, AugmentMelSTFT",
     "mel: {sample_rate: 32000, preemphasis: 0.97, preemphasis_first: drop, n_fft: 1024, "
     "win_length: 800, hop: 320, periodic: false, n_mels: 128, fmax: 15500, mel_scale: kaldi, "
     "triangles: mel, log: ln, amin: 1e-30, log_offset: 1e-5, normalize: fixed, norm_mean: "
     "-4.5, norm_std: 5}"},
    {"styletts2", "StyleTTS 2, Kokoro", "StyleTTS 2's meldataset.py",
     "mel: {sample_rate: 24000, filter_rate: 16000, n_fft: 2048, win_length: 1200, hop: 300, "
     "n_mels: 80, log: ln, amin: 1e-30, log_offset: 1e-5, normalize: fixed, norm_mean: -4, "
     "norm_std: 4}"},
    {"espnet_tts", "ESPnet's LogMelFbank, 24 kHz", "ESPnet's LogMelFbank",
     "mel: {sample_rate: 24000, n_fft: 1024, hop: 256, power: 1, power_floor: 1e-10, n_mels: "
     "80, fmin: 80, fmax: 7600, mel_scale: slaney, norm: slaney, log: log10}"},
};

// The text up to a mark, which both are removed from `rest`.
std::string_view cut(std::string_view& rest, std::string_view mark) {
  const std::size_t at = std::min(rest.find(mark), rest.size());
  const std::string_view out = rest.substr(0, at);
  rest.remove_prefix(std::min(at + mark.size(), rest.size()));
  return out;
}

}  // namespace

std::string_view FrontEndNode::find(std::string_view option) const {
  const auto at = std::find_if(options.begin(), options.end(),
                               [option](const auto& o) { return o.first == option; });
  return at == options.end() ? std::string_view() : at->second;
}

std::vector<FrontEndNode> FrontEnd::nodes() const {
  std::vector<FrontEndNode> out;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = cut(rest, "\n");
    FrontEndNode& node = out.emplace_back(FrontEndNode{line, {}, {}});
    node.stage = cut(line, ": {");
    for (std::string_view options = cut(line, "}"); !options.empty();) {
      std::string_view value = cut(options, ", ");
      const std::string_view key = cut(value, ": ");
      node.options.emplace_back(key, value);
    }
  }
  return out;
}

int FrontEnd::sample_rate_of(std::string_view stage) const {
  for (const FrontEndNode& node : nodes())
    if (node.stage == stage && !node.find("sample_rate").empty())
      return std::stoi(std::string(node.find("sample_rate")));
  return 0;
}

std::span<const FrontEnd> front_ends() { return kFrontEnds; }

const FrontEnd* find_front_end(std::string_view name) {
  const auto* at = std::find_if(std::begin(kFrontEnds), std::end(kFrontEnds),
                                [name](const FrontEnd& f) { return f.name == name; });
  return at == std::end(kFrontEnds) ? nullptr : at;
}

}  // namespace melflow
