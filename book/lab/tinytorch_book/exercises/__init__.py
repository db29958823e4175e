"""Exercises: the checks of answers, one module a chapter, and a model of the reader's parts.

Cells take the checks from `tinytorch_book.check`, where all of them are found by name.
"""
