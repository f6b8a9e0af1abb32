// preprocessor_config.json and processor_config.json of Transformers.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "pipeline/base/text.h"
#include "stages/model_files/front_end_class.h"
#include "stages/model_files/model_formats.h"
#include "stages/model_files/model_text.h"

namespace melflow {
namespace {

constexpr const char* kClassKey = "feature_extractor_type";

// FEATURE_EXTRACTOR_MAPPING_NAMES: what AutoFeatureExtractor takes where a file has no class.
constexpr std::pair<std::string_view, std::string_view> kModelTypes[] = {
    {"apertus1p5", "WavTokenizerFeatureExtractor"},
    {"audio-spectrogram-transformer", "ASTFeatureExtractor"},
    {"audioflamingo3", "WhisperFeatureExtractor"},
    {"canary", "ParakeetFeatureExtractor"},
    {"clap", "ClapFeatureExtractor"},
    {"clvp", "ClvpFeatureExtractor"},
    {"cohere_asr", "CohereAsrFeatureExtractor"},
    {"csm", "EncodecFeatureExtractor"},
    {"dac", "DacFeatureExtractor"},
    {"data2vec-audio", "Wav2Vec2FeatureExtractor"},
    {"dia", "DiaFeatureExtractor"},
    {"dots3_note", "Dots3NoteFeatureExtractor"},
    {"embedding_gemma2", "Gemma4AudioFeatureExtractor"},
    {"encodec", "EncodecFeatureExtractor"},
    {"fun_asr_nano", "FunAsrNanoFeatureExtractor"},
    {"gemma3n", "Gemma3nAudioFeatureExtractor"},
    {"gemma4", "Gemma4AudioFeatureExtractor"},
    {"gemma4_unified", "Gemma4UnifiedAudioFeatureExtractor"},
    {"glmasr", "WhisperFeatureExtractor"},
    {"gradium_phonon_tts", "PocketTTSFeatureExtractor"},
    {"granite_speech", "GraniteSpeechFeatureExtractor"},
    {"granite_speech5_ctc", "GraniteSpeech5FeatureExtractor"},
    {"granite_speech5_encoder", "GraniteSpeech5FeatureExtractor"},
    {"granite_speech_plus", "GraniteSpeechFeatureExtractor"},
    {"higgs_audio_v2_tokenizer", "DacFeatureExtractor"},
    {"hubert", "Wav2Vec2FeatureExtractor"},
    {"inkling_mm_model", "InklingFeatureExtractor"},
    {"kyutai_speech_to_text", "KyutaiSpeechToTextFeatureExtractor"},
    {"lasr_ctc", "LasrFeatureExtractor"},
    {"lasr_encoder", "LasrFeatureExtractor"},
    {"mimi", "EncodecFeatureExtractor"},
    {"moonshine", "Wav2Vec2FeatureExtractor"},
    {"moshi", "EncodecFeatureExtractor"},
    {"moss_transcribe_diarize", "MossTranscribeDiarizeFeatureExtractor"},
    {"muse_spark", "MuseSparkFeatureExtractor"},
    {"musicgen", "EncodecFeatureExtractor"},
    {"musicgen_melody", "MusicgenMelodyFeatureExtractor"},
    {"nemo_speechlm", "NemotronAsrStreamingFeatureExtractor"},
    {"nemotron3_5_asr", "NemotronAsrStreamingFeatureExtractor"},
    {"nemotron3_diarization", "NemotronAsrStreamingFeatureExtractor"},
    {"nemotron_asr_streaming", "NemotronAsrStreamingFeatureExtractor"},
    {"nemotron_asr_streaming_encoder", "NemotronAsrStreamingFeatureExtractor"},
    {"neucodec", "NeuCodecFeatureExtractor"},
    {"omniasr", "OmniASRFeatureExtractor"},
    {"omniasr_ctc", "OmniASRFeatureExtractor"},
    {"parakeet_ctc", "ParakeetFeatureExtractor"},
    {"parakeet_encoder", "ParakeetFeatureExtractor"},
    {"parakeet_rnnt", "ParakeetFeatureExtractor"},
    {"parakeet_tdt", "ParakeetFeatureExtractor"},
    {"pe_audio", "PeAudioFeatureExtractor"},
    {"pe_audio_video", "PeAudioFeatureExtractor"},
    {"phi4_multimodal", "Phi4MultimodalFeatureExtractor"},
    {"pocket_tts", "PocketTTSFeatureExtractor"},
    {"pocket_tts_audio_tokenizer", "EncodecFeatureExtractor"},
    {"pop2piano", "Pop2PianoFeatureExtractor"},
    {"qwen2_5_omni", "WhisperFeatureExtractor"},
    {"qwen2_audio", "WhisperFeatureExtractor"},
    {"qwen3_asr", "Qwen3ASRFeatureExtractor"},
    {"qwen3_omni_moe", "WhisperFeatureExtractor"},
    {"seamless_m4t", "SeamlessM4TFeatureExtractor"},
    {"seamless_m4t_v2", "SeamlessM4TFeatureExtractor"},
    {"sew", "Wav2Vec2FeatureExtractor"},
    {"sew-d", "Wav2Vec2FeatureExtractor"},
    {"speech_to_text", "Speech2TextFeatureExtractor"},
    {"speecht5", "SpeechT5FeatureExtractor"},
    {"unispeech", "Wav2Vec2FeatureExtractor"},
    {"unispeech-sat", "Wav2Vec2FeatureExtractor"},
    {"univnet", "UnivNetFeatureExtractor"},
    {"vibevoice", "VibeVoiceAcousticTokenizerFeatureExtractor"},
    {"vibevoice_acoustic_tokenizer", "VibeVoiceAcousticTokenizerFeatureExtractor"},
    {"vibevoice_asr", "VibeVoiceAcousticTokenizerFeatureExtractor"},
    {"voxtral", "WhisperFeatureExtractor"},
    {"voxtral_realtime", "VoxtralRealtimeFeatureExtractor"},
    {"wav2vec2", "Wav2Vec2FeatureExtractor"},
    {"wav2vec2-bert", "Wav2Vec2FeatureExtractor"},
    {"wav2vec2-conformer", "Wav2Vec2FeatureExtractor"},
    {"wavlm", "Wav2Vec2FeatureExtractor"},
    {"wavtokenizer", "WavTokenizerFeatureExtractor"},
    {"whisper", "WhisperFeatureExtractor"},
    {"xcodec", "DacFeatureExtractor"},
    {"xcodec2", "Xcodec2FeatureExtractor"},
};

// Of a model's config.json beside the file.
std::string class_by_model_type(FileSurroundings& beside, Problems& problems) {
  const std::string path = (std::filesystem::path(beside.folder) / "config.json").string();
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) return {};
  const std::string bytes = read_model_bytes(path);
  beside.read_too += bytes;
  const std::string type = text_at(read_model_text(bytes, path, problems), "model_type");
  const auto* at = std::find_if(std::begin(kModelTypes), std::end(kModelTypes),
                                [&type](const auto& row) { return row.first == type; });
  return at == std::end(kModelTypes) ? std::string() : std::string(at->second);
}

// The keys of an image processor, which may share the file.
bool is_of_image(std::string_view key) {
  constexpr std::string_view kKeys[] = {"size",
                                        "crop_size",
                                        "resample",
                                        "rescale_factor",
                                        "data_format",
                                        "num_channels",
                                        "patch_size",
                                        "max_num_patches",
                                        "dynamic_hd",
                                        "disable_grouping",
                                        "input_data_format",
                                        "pad_size",
                                        "return_tensors",
                                        "default_to_square",
                                        "device"};
  return key.starts_with("image_") || key.starts_with("video_") || key.starts_with("do_resize") ||
         key.starts_with("do_rescale") || key.starts_with("do_center_crop") ||
         key.starts_with("do_convert_rgb") || key.starts_with("do_pad") ||
         key.starts_with("do_pan_and_scan") || key.starts_with("pan_and_scan") ||
         std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

}  // namespace

std::optional<ModelInstance> transformers_instance(const Value& root, FileSurroundings& beside,
                                                   Problems& problems) {
  const Value* map = &root;
  for (const char* key : {"feature_extractor", "audio_processor"})
    if (const Value* nested = root.find(key); nested != nullptr && nested->is_map()) {
      map = nested;
      break;
    }
  ModelInstance out;
  out.family = &kTransformers;
  out.keys = *map;
  out.mark = map->mark();
  if (const Value* of = map->find(kClassKey)) {
    out.class_name = of->text();
    out.mark = of->mark();
  }
  if (const Value* of = beside.given->find(kClassKey)) out.class_name = of->text();
  const bool is_one = map->find("sampling_rate") != nullptr || map->find("feature_size") != nullptr;
  if (out.class_name.empty() && is_one) {
    out.class_name = class_by_model_type(beside, problems);
    if (out.class_name.empty())
      problems.add(out.mark,
                   fmt::format("there is no {0} in the file, which names the class, and no "
                               "config.json beside it whose model_type is known; write {{file: "
                               "FILE, {0}: Wav2Vec2FeatureExtractor}}",
                               kClassKey));
  }
  if (out.class_name.empty()) return std::nullopt;
  if (map->find("image_processor_type") != nullptr)
    std::erase_if(out.keys.entries(), [](const Value::Entry& e) { return is_of_image(e.key); });
  return out;
}

}  // namespace melflow
