"""Exercises: what checks an answer, one module a chapter, and the model of the reader's parts.

Cells take the checks from `tinytorch.check`, where all of them are found by name.
"""
