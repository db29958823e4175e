"""Looking inside a model: what it holds at every token, where, and whether it uses it.

The residual stream (`stream`), what heads look at (`heads`), what a linear probe reads (`probes`),
and whether the model uses it (`ablation`, `patching`).
"""
