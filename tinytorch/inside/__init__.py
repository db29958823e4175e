"""Looking inside a model: what it knows at every token, where, and whether it uses it.

The residual stream (`stream`), what heads look at (`heads`), what a linear map can read off
(`probes`), and whether the model uses it (`ablation`, `patching`).
"""
