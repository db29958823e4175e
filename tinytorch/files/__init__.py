"""Files: atomic writes, downloads, safetensors, strict JSON; and command lines."""
