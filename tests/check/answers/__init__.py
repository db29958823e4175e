"""For every exercise: right answers written differently, and wrong ones that a learner gives.

One module a chapter, each with `RIGHT = {"name_of_check": [answer, ...]}` and
`WRONG = {"name_of_check": {"what is wrong with it": answer, ...}}`. An exercise that asks for two
functions has pairs of them.
"""
