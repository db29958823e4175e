"""A directive or option that does not exist is found without a build."""

import re
from pathlib import Path

import pytest
from _ext.directives import names

KNOWN = names.known()

PAGE = """\
# Page

```{chapter-card}
:question: why?
:difficult: 2
- aim
```

:::{admonition} Title
:class: tip

```{code-cell} ipython3
---
tags: [hide-imput]
liv: {smaller: n = 1}
---
x = {"not": "a directive"}
```
:::

````{exercise} Title
:kind: write

```{predicton} name
text
```
````

```python
`{nothing}`
```
"""


def test_each_unknown_name_is_reported_with_its_line_and_the_nearest_name():
    assert list(names.problems(PAGE, KNOWN)) == [
        (3, "chapter-card has no option 'difficult'; did you mean 'difficulty'?"),
        (12, "code-cell has no option 'liv'; did you mean 'live'?"),
        (12, "a cell has no tag 'hide-imput'; did you mean 'hide-input'?"),
        (24, "there is no directive 'predicton'; did you mean 'prediction'?"),
    ]


@pytest.mark.parametrize("name", ["zzz", ""])
def test_without_a_similar_name_all_are_listed(name):
    assert "; there are aims, " in names.nearest(name, ["aims", "projects"]) + ", "


def test_every_directive_of_the_extensions_is_known():
    sources = Path(names.__file__).resolve().parents[1].rglob("*.py")
    found = re.compile(r"\.add_directive\(\s*\"([\w-]+)\"")
    added = {name for path in sources for name in found.findall(path.read_text(encoding="utf-8"))}
    assert len(added) > 8 and added <= set(KNOWN)


def test_the_book_has_no_unknown_directives_or_options():
    assert names.main() == 0
