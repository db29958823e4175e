"""Looking inside a model: what it holds at every token, where, and whether it uses it.

What stands in the stream and what a part adds to it (`stream`), what heads look at (`heads`), and
what can be read off by a line (`probes`). `what_it_learned` is the study of the model of this book.
"""
