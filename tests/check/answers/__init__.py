"""For every exercise: right answers written differently, and wrong ones that a learner gives.

One module a chapter, each with `RIGHT = {"name_of_check": [answer, ...]}` and
`WRONG = {"name_of_check": {"what is wrong with it": answer, ...}}`; for those that have a hint of
their own, `HINTS = {"name_of_check": {"what is wrong with it": "words of the hint"}}`. An exercise
that asks for two functions has pairs of them.
"""
