"""The cache of executed chapters belongs to one state of the package."""

from types import SimpleNamespace

from fresh import choose_cache, fingerprint, looks


def package(root):
    (root / "tinytorch" / "data").mkdir(parents=True)
    (root / "tinytorch" / "ops.py").write_text("x = 1\n")
    (root / "tinytorch" / "data" / "corpus.txt").write_text("once upon a time\n")
    return root


def test_a_change_in_code_or_data_or_a_new_name_gives_another_fingerprint(tmp_path):
    root = package(tmp_path)
    seen = {fingerprint(root)}
    (root / "tinytorch" / "ops.py").write_text("x = 2\n")
    seen.add(fingerprint(root))
    (root / "tinytorch" / "data" / "corpus.txt").write_text("once\n")
    seen.add(fingerprint(root))
    (root / "tinytorch" / "ops.py").rename(root / "tinytorch" / "operations.py")
    seen.add(fingerprint(root))
    assert len(seen) == 4


def test_compiled_files_and_times_do_not_matter(tmp_path):
    root = package(tmp_path)
    before = fingerprint(root)
    (root / "tinytorch" / "ops.pyc").write_bytes(b"\0")
    (root / "tinytorch" / "ops.py").touch()
    assert fingerprint(root) == before


def test_the_caches_of_older_packages_are_removed(tmp_path):
    root = package(tmp_path)
    old = root / "_build" / ".jupyter_cache-0123456789abcdef"
    old.mkdir(parents=True)
    config = SimpleNamespace()
    choose_cache(SimpleNamespace(srcdir=root), config)
    assert config.nb_execution_cache_path.endswith(f".jupyter_cache-{fingerprint(root)}")
    assert not old.exists()


def test_a_change_of_the_style_sheet_alone_writes_the_pages_again(tmp_path):
    root = package(tmp_path)
    style = root / "book" / "_static" / "style.css"
    style.parent.mkdir(parents=True)
    style.write_text("a {}")
    before = looks(root), fingerprint(root)
    style.write_text("b {}")
    assert looks(root) != before[0]
    assert fingerprint(root) == before[1], "and runs no chapter again"
