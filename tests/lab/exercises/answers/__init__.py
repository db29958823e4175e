"""For every exercise: right answers written differently, and misconceptions that learners have.

Small slips are made by `mutants.py`; here stands what no small change of a solution comes to, and
each mistake that a check declares, made once more, so that the check knows it.

One module a chapter, each with `RIGHT = {"name_of_check": [answer, ...]}`, beside the solution of
the page, and `WRONG = {"name_of_check": {"what is wrong with it": answer, "… words of its hint":
answer, ...}}`. An answer may be written as edits of the page's solution, `("what stands
there", "what is written instead", ...)`; of values to predict only the wrong ones are given. An
exercise that asks for two functions has pairs of them.
"""


def changed(layer, **attributes):
    """A class that differs from another in these attributes or methods."""
    return type(layer.__name__, (layer,), attributes)


def guesses(table):
    """The wrong predictions of a table `{key: {guess: words of its hint}}`, one for each guess."""
    found = {}
    for key, known in table.items():
        for guess, words in known.items():
            assert f"… {words}" not in found, f"two guesses are told {words!r}"
            found[f"… {words}"] = {key: guess}
    return found
