"""Files: safetensors, GGUF, strict JSON, downloads, atomic writes; and command lines."""
