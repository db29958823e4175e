"""The texts worth trying are named by addresses that do not change and by whole checksums."""

import re

from built import ROOT

PAGE = (ROOT / "book/appendix/texts.md").read_text(encoding="utf-8")


def test_each_text_has_its_checksum_and_a_pinned_address():
    digests = re.findall(r'sha256="(\w+)"', PAGE)
    rows = re.findall(r"^\| .* \| ([\d,]+) \|", PAGE, re.M)
    assert len(digests) == len(set(digests)) == len(rows) == PAGE.count(" = load_text(") == 4
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in digests)
    assert re.search(r"char-rnn/\"\nCOMMIT = \"[0-9a-f]{40}\"", PAGE)
    assert re.search(r"/google/brotli/v\d+\.\d+\.\d+/tests/testdata/\"", PAGE)
