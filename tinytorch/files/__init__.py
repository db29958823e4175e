"""Files: written whole or not at all, downloaded, safetensors, strict JSON; and command lines."""
