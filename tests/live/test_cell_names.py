"""What the code of a cell needs, defines and cannot be: known without running it."""

import cell_names
import pytest


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("print(a + b)", ["a", "b"]),
        ("a = 1\nprint(a)", []),
        ("import numpy as np\nnp.zeros(3)", []),
        ("def f(x):\n    return x + a", ["a"]),
        ("def f(x):\n    y = x\n    return y", []),
        ("[i for i in range(3)]", []),
        ("class A(Module):\n    def g(self):\n        return helper(self)", ["Module", "helper"]),
        ("not python at (", []),
        ("x += 1", []),  # bound in the cell: Python itself will say so
    ],
)
def test_names_that_a_cell_takes_from_cells_above(source, missing):
    assert cell_names.missing_names(source) == missing


def test_cells_above_that_define_missing_names_are_chosen():
    above = ["import numpy as np", "a = np.ones(3)", "print(np.pi)", "b = a + 1", "c = 5", "a = 7"]
    assert cell_names.needed_cells(above, ["b"]) == [0, 1, 3]
    assert cell_names.needed_cells(above, ["a"]) == [5]
    assert cell_names.needed_cells(above, ["b", "c"]) == [0, 1, 3, 4]
    assert cell_names.needed_cells(above, ["d"]) == []


@pytest.mark.parametrize("source", ["x = (7\n% 4)", "text = '''\n%d\n!\n'''"])
def test_valid_python_is_not_taken_for_magic(source):
    assert cell_names.split_magic(source) == (source, [])


def test_magic_becomes_a_line_that_does_nothing():
    source, commands = cell_names.split_magic("for i in y:\n    !echo {i}\nfiles = !ls")
    assert source == "for i in y:\n    pass\npass"
    assert commands == [(2, "!echo {i}"), (3, "!ls")]


def test_cells_in_another_language_contain_no_python():
    assert cell_names.split_magic("%%bash\nls") == ("pass", [(1, "%%bash")])
    assert cell_names.split_magic("%%time\nx = 1") == ("pass\nx = 1", [(1, "%%time")])
