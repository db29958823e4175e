"""Checks for the exercises of the book: `check.name(your_answer)` reports and never raises.

One module a chapter; all checks are importable from here.
"""
