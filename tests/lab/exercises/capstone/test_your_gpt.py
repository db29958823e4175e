"""The one file: made of all solutions, of none, of some; run alone, beside the package."""

import linecache
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from solutions import MLP, solve

from tinytorch import GPT, AdamW, Tensor, clip_grad_norm, functional
from tinytorch.core.optimizers import only_matrices
from tinytorch_book.exercises.capstone import your_gpt as exporter
from tinytorch_book.exercises.capstone.keepsake import Keepsake
from tinytorch_book.exercises.capstone.parts import PARTS, Part, section
from tinytorch_book.exercises.capstone.your_gpt import MOST_LINES, main, your_gpt

pytestmark = pytest.mark.slow  # it trains, and runs files by themselves
CHAPTER = Path(__file__).resolve().parents[4] / "book" / "capstone" / "your-gpt.md"
ALONE = """
import runpy, sys
for name in ("tinytorch", "scipy", "matplotlib", "torch", "regex"):
    sys.modules[name] = None  # cannot be imported
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Every part that the book's exercises build, accepted and kept."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("reader") / "my_parts.py"
        patch.setenv("TINYTORCH_PARTS", str(path))
        reports, parts = solve(path)
    for name, report in reports.items():
        assert report.kept.startswith(f"kept as your part “{name}” in my_parts.py ("), report.kept
        assert " of 22 for your GPT" in report.kept
    assert sum("(22 of 22 for" in report.kept for report in reports.values()) == 1
    return {**parts, "mlp": Part("mlp", "MyMLP", MLP)}


@pytest.fixture(scope="module")
def files(solved):
    some = {name: part for i, (name, part) in enumerate(solved.items()) if i % 2}
    return {"all": your_gpt(solved), "none": your_gpt({}), "some": your_gpt(some)}


def test_every_part_but_the_plain_heads_is_in_the_file_made_of_all(files, solved):
    assert set(solved) == set(PARTS)
    assert files["all"].reasons == {}
    assert set(files["all"].yours) == set(PARTS) - {"heads"}  # those with a cache stand there
    assert files["all"].others == ()
    assert files["none"].yours == ()
    assert len(files["some"].yours) == len(PARTS) // 2


@pytest.mark.parametrize("which", ["all", "none", "some"])
def test_the_file_runs_alone_and_writes(which, files, tmp_path, stories):
    lines = files[which].source.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 100
    (tmp_path / "stories.txt").write_text(stories.generate(80, seed=1), encoding="utf-8")
    files[which].save(str(tmp_path / "your_gpt.py"))
    command = [sys.executable, "-I", "-W", "error", "-c", ALONE]
    options = [
        "your_gpt.py",
        "stories.txt",
        "--steps",
        "12",
        "--width",
        "16",
        "--prompt",
        "Mia was",
    ]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nMia was") == 3
    assert "nats a character on text held out" in done.stdout


@pytest.mark.parametrize("which", ["all", "none", "some"])
def test_it_computes_and_learns_as_the_package_does(which, files, stories):
    file, T = files[which].module(), 24
    tokenizer = file.Tokenizer(stories.generate(60, seed=1), 80)
    ids = np.array(tokenizer.encode(stories.generate(60, seed=1)))
    own = file.initialise(file.GPT(len(tokenizer.tokens), 16, 2, 2, T), np.random.default_rng(0))
    ours = GPT(len(tokenizer.tokens), 16, 2, 2, T)
    ours.load_state_dict({name: p.data for name, p in own.named_parameters()})

    batch = ids[: 2 * T].reshape(2, T)
    np.testing.assert_allclose(own(batch).data, ours(batch).data, rtol=1e-3, atol=1e-5)
    file.cross_entropy(own(batch), batch).backward()
    functional.cross_entropy(ours(batch), batch).backward()
    for (name, p), (_, q) in zip(own.named_parameters(), ours.named_parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=1e-3, atol=1e-5, err_msg=name)
        p.grad = None

    losses = list(file.train(own, ids, 60, T, batch=8))
    theirs = list(trained(ours, ids, 60, T, batch=8))
    np.testing.assert_allclose(losses, theirs, rtol=0.02)
    assert losses[-1] < 0.8 * losses[0]


def trained(model, ids, steps, T, batch, lr=0.01):
    """The package's own training, on the batches and at the rates of the file."""
    rng, optimiser = np.random.default_rng(0), AdamW(model.parameters(), decay=only_matrices)
    for step in range(steps):
        rows = ids[rng.integers(len(ids) * 9 // 10 - T, size=(batch, 1)) + np.arange(T + 1)]
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(rows[:, :-1]), rows[:, 1:])
        loss.backward()
        clip_grad_norm(model.parameters(), 1.0)
        warmup, cooldown = min(50, steps), max(1, steps // 3)
        optimiser.lr = lr * min(1, (step + 1) / warmup, (steps - step) / cooldown)
        optimiser.step()
        yield loss.item()


def test_the_autograd_of_the_file_has_the_gradients_of_the_package():
    file, rng = your_gpt({}).module(), np.random.default_rng(0)
    x, y = np.abs(rng.normal(size=(2, 3, 4))) + 0.5, np.abs(rng.normal(size=(4,))) + 0.5
    for f in (
        lambda a, b: a * b + a / b - b,
        lambda a, b: 2.0 / a - (1 - b) + -a,
        lambda a, b: (a**3).sqrt() + b.log() * a.exp(),
        lambda a, b: a.mean(axis=1, keepdims=True) + a.var(axis=-1, keepdims=True) * b,
        lambda a, b: (a.permute(0, 2, 1) @ a).transpose(0, 2).reshape(4, -1)[1:, 2] * b[0],
        lambda a, b: a[:, [0, 0, 1]] * np.ones(4) + np.sqrt(b) * a.sum(axis=1, keepdims=True),
        lambda a, b: a @ (b.reshape(4, 1) * np.ones((4, 2))),
    ):
        own = [file.Tensor(x), file.Tensor(y)]
        ours = [Tensor(x, requires_grad=True), Tensor(y, requires_grad=True)]
        f(*own).sum().backward()
        f(*ours).sum().backward()
        for p, q in zip(own, ours, strict=True):
            if q.grad is not None:
                np.testing.assert_allclose(p.grad, q.grad, rtol=1e-4, atol=1e-5)


def norm(forward):
    source = MLP.split("\n\n")[0].replace("Linear, Module", "Module, Parameter") + (
        "\nimport numpy as np\n\nclass Norm(Module):\n"
        "    def __init__(self, d, eps=1e-5):\n"
        "        self.gamma, self.beta = Parameter(np.ones(d)), Parameter(np.zeros(d))\n\n"
        f"    def forward(self, x):\n        {forward}\n"
    )
    return {"norm": Part("norm", "Norm", source)}


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        ("return x.cumsum(axis=-1)", "AttributeError: 'Tensor' object has no attribute 'cumsum'"),
        ("return functional.layer_norm(x, self.gamma, self.beta)", "NameError: functional."),
        ("return x * self.gamma + self.beta", "it changes the file's logits"),
        ("return x * self.gamma", "it changes the file's logits"),
        (
            "return (x - x.mean(axis=-1, keepdims=True)) / (x.var(axis=-1, keepdims=True)"
            " + 1e-5).sqrt() * self.gamma",
            "with it the file has no gradient of blocks.0.ln1.beta",
        ),
    ],
)  # fmt: skip
def test_a_part_that_does_not_fit_is_named_and_ours_is_used(forward, reason, solved):
    file = your_gpt({**norm(forward), "draw": solved["draw"]})
    assert reason in file.reasons["norm"]
    assert file.yours == ("draw",)
    assert "class LayerNorm" in file.source
    assert f"  [ ] yours is left out, norm: {file.reasons['norm']}" in repr(file)
    assert "norm: the book's" not in repr(file)


def test_a_part_that_takes_something_from_the_laboratory_is_left_out():
    source = f"from tinytorch_book import stories\n\n{MLP}"
    assert (
        "NameError: stories of the package"
        in (your_gpt({"mlp": Part("mlp", "MyMLP", source)}).reasons["mlp"])
    )


def test_a_class_that_extends_its_own_name_is_left_out_for_that_reason():
    [part] = norm("return x").values()
    source = part.source.replace("class Norm(Module)", "class Norm(Norm)")
    file = your_gpt({"norm": Part("norm", "Norm", source)})
    assert "extends the class of its own name" in file.reasons["norm"]


@pytest.mark.parametrize(
    ("name", "ours", "wrong", "reason"),
    [
        ("optimiser", "(step + decay * w)", "step", "decayed weight"),
        ("schedule", ", (total - step) / cooldown", "", "rates"),
        ("clip", "max(norm, max_norm)", "norm", "small step"),
        (
            "top-p",
            "falling.cumsum(axis=1) - falling < p",
            "falling.cumsum(axis=1) < p",
            "likeliest",
        ),
    ],
)
def test_a_part_that_is_wrong_in_one_place_is_left_out(name, ours, wrong, reason):
    body = exporter._sections()[name]
    assert ours in body
    answer = re.match(r"def (\w+)", body)[1]
    source = f"import math\n\nimport numpy as np\n\n{body}"
    assert your_gpt({name: Part(name, answer, source)}).yours == (name,)
    spoilt = your_gpt({name: Part(name, answer, source.replace(ours, wrong))})
    assert spoilt.reasons == {name: f"it changes the file's {reason}"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["none.txt"], "none.txt cannot be read as UTF-8 text"),
        (["."], "cannot be read as UTF-8 text"),
        (["latin.txt"], "latin.txt cannot be read as UTF-8 text"),
        (["latin.txt", "--steps", "-5"], "sizes and steps are 1 or more"),
        (["latin.txt", "--width", "30"], "a multiple of --heads"),
    ],
)
def test_the_file_says_what_it_cannot_use(options, said, files, tmp_path):
    (tmp_path / "latin.txt").write_bytes("Zoë".encode("latin-1"))
    files["none"].save(str(tmp_path / "your_gpt.py"))
    command = [sys.executable, "your_gpt.py", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_part_whose_helper_has_a_name_of_the_file_keeps_its_helper():
    source = (
        "import numpy as np\n\n\ndef total(x):\n    return x.cumsum(axis=1)\n\n\n"
        "def mine(probs, u):\n    sums = total(probs)\n"
        "    return (sums <= (u * sums[:, -1])[:, None]).sum(axis=1)\n"
    )
    file = your_gpt({"draw": Part("draw", "mine", source)})
    assert (file.yours, file.reasons) == (("draw",), {})
    assert "def _draw():\n    def total(x):" in file.source.replace("\n\n", "\n")


def test_a_part_that_makes_the_file_too_long_is_left_out(solved):
    long = solved["draw"].source + "# a line\n" * 50
    file = your_gpt({**solved, "draw": Part("draw", solved["draw"].answer, long)})
    assert file.reasons == {"draw": "with it the file is longer than 400 lines; shorten it"}
    assert len(file.source.splitlines()) <= MOST_LINES


def test_the_first_lines_say_whose_the_parts_are(files, solved):
    few = your_gpt({"norm": solved["norm"], "block": solved["block"]})
    assert "Yours: norm, block.\nThe book's: lookup, lookup gradient," in few.source
    assert "LayerNorm = MyLayerNorm  # yours" in few.source.replace(", block = ", " = ").replace(
        ", my_block", ""
    )
    assert "Yours: nothing yet." in files["none"].source
    assert "The book's: no part." in files["all"].source


CELL = r"^```\{code-cell\} ipython3\n(?:---\n.*?^---\n|:tags:[^\n]*\n)?(.*?)^```"


def told_by_the_chapter(parts, path, monkeypatch, capsys):
    """What the chapter prints where a reader has these parts, up to their being one file."""
    path.write_text("\n".join(map(section, parts.values())), encoding="utf-8")
    monkeypatch.setenv("TINYTORCH_PARTS", str(path))
    cells = re.findall(CELL, CHAPTER.read_text("utf-8"), re.S | re.M)
    assembled = next(i for i, cell in enumerate(cells) if "file = your_gpt(parts)" in cell)
    names = {"__name__": "chapter"}
    for i, cell in enumerate(cells[: assembled + 1]):
        linecache.cache[f"cell {i}"] = (len(cell), None, cell.splitlines(keepends=True), "")
        exec(compile(cell, f"cell {i}", "exec"), names)
    return capsys.readouterr().out, names["file"]


def test_the_chapter_takes_the_parts_of_a_reader(solved, tmp_path, monkeypatch, capsys):
    told, file = told_by_the_chapter(solved, tmp_path / "my_parts.py", monkeypatch, capsys)
    assert re.findall(r"^yours    ([\w -]+?)  ", told, re.M) == list(PARTS)
    losses = re.findall(r"^([\w -]+?) +\d\.\d{4} +\d\.\d{4} +\d\.\d{4}$", told, re.M)
    assert losses == ["ours alone", *file.yours]
    assert file.others == ()


def test_nothing_is_called_the_readers_who_has_written_nothing(tmp_path, monkeypatch, capsys):
    told, file = told_by_the_chapter({}, tmp_path / "my_parts.py", monkeypatch, capsys)
    assert not re.search(r"^yours", told, re.M) and told.count("\nexample  ") == 3
    assert ", 0 of 22 parts yours, 3 examples\n" in told and told.count("ours alone") == 1
    assert (file.yours, file.examples) == ((), ("norm", "optimiser", "draw"))
    assert "\nYours: nothing yet.\nExamples: norm, optimiser, draw.\n" in file.source
    assert "# yours" not in file.source and file.source.count("  # an example\n") == 3
    assert "My own parts: 0 of 22." in Keepsake(file, 1.0).file[1]
    assert repr(file).count("an example; solve ") == 3


def test_the_chapter_names_the_part_of_a_reader_that_is_at_fault(
    solved, tmp_path, monkeypatch, capsys
):
    wrong = norm("return x * self.gamma + self.beta")["norm"]
    parts = {"mlp": solved["mlp"], "norm": wrong, "draw": solved["draw"]}
    told, file = told_by_the_chapter(parts, tmp_path / "my_parts.py", monkeypatch, capsys)
    assert told.count(f"\nnorm is at fault: {file.reasons['norm']}\n") == 1
    assert file.yours == ("mlp", "draw")


def test_the_command_writes_the_file_that_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["--output=mine.py"]) == main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("your_gpt.py: ") and "written to mine.py" in said
    ours = your_gpt().source
    assert (tmp_path / "mine.py").read_text() == (tmp_path / "your_gpt.py").read_text() == ours
