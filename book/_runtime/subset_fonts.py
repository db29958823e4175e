"""Write the fonts of the pages: `make fonts`, whose results in book/_static/fonts are committed.

The fonts are fetched (`pinned.toml`) and cut down to the characters and weights that the book
needs. Their licence keeps the name "Source" for the whole font, so what is left gets another.
"""

from pathlib import Path

from _ext.live import pinned_downloads
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "book" / "_static" / "fonts"
LATIN = [*range(0x20, 0x7F), *range(0xA0, 0x180), *map(ord, "–—‘’“”„†•…‰‹›€−")]
LETTERS = [*range(0x20, 0x7F), *range(0x391, 0x3CA), *map(ord, "ϵϕ")]
LETTERS += [*range(0x1D434, 0x1D468), 0x210E, *range(0x1D6E2, 0x1D71C), *map(ord, "ℂℕℚℝℤℒ𝒟𝒩𝒪")]
SIGNS = "¬±·×÷ ‖…′″‾¯ˆ˜ˉ→←↦⇒∀∂∃∅∆∇∈∉∏∑−∓∗∘√∝∞∣∥∧∨∩∪∫∼≈≠≡≤≥≪≫⊂⊆⊕⊗⊙⊤⊥⋅⋮⋯⋱⌈⌉⌊⌋⟨⟩\u2061\u2062"
MATH = [*LETTERS, *map(ord, SIGNS)]
ROOM_UNDER_BAR = 130  # of 1000
FONTS = {  # the file that is fetched: what becomes of it, its characters, features and weights
    "source-serif-4-latin-wght-normal": ("serif", LATIN, ["kern", "liga", "lnum"], (400, 700)),
    "source-serif-4-latin-wght-italic": (
        "serif-italic",
        LATIN,
        ["kern", "liga", "lnum"],
        (400, 700),
    ),
    "source-code-pro-latin-wght-normal": ("mono", LATIN, [], (400, 600)),
    "stix-two-math-latin-400-normal": ("math", MATH, ["ssty", "dtls"], None),
}


def main() -> None:
    """Write every font, and say how large it is."""
    TARGET.mkdir(exist_ok=True)
    for source, (name, characters, features, weights) in FONTS.items():
        font = TTFont(pinned_downloads.folder("fonts") / f"{source}.woff2", recalcTimestamp=False)
        subset(font, characters, features)
        if weights:
            font = instantiateVariableFont(font, {"wght": weights})
        if "MATH" in font:
            fix_roots(font)
        rename(font, f"TinyTorch {name}")
        font.flavor = "woff2"
        font.save(TARGET / f"{name}.woff2")
        print(f"{name}.woff2: {(TARGET / f'{name}.woff2').stat().st_size} bytes")


def subset(font: TTFont, characters: list[int], features: list[str]) -> None:
    """Keep these characters, and what these features make of them."""
    options = Options()
    options.layout_features, options.hinting, options.name_IDs = features, False, ["*"]
    options.recalc_timestamp = False
    worker = Subsetter(options)
    worker.populate(unicodes=characters)
    worker.subset(font)


def fix_roots(font: TTFont) -> None:
    """Make every size of the root sign as wide as the first, and raise its bar.

    Chromium leaves room for the widest size whichever it draws, and rounds the gap under the bar.
    """
    table = font["MATH"].table
    variants, sign = table.MathVariants, font.getBestCmap()[ord("√")]
    sizes = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(sign)]
    names = {record.VariantGlyph for record in sizes.MathGlyphVariantRecord}
    names |= {part.glyph for part in sizes.GlyphAssembly.PartRecords}
    width = font["hmtx"][sign][0]
    for name in names - {sign}:
        glyph, advance = font["glyf"][name], font["hmtx"][name][0]
        glyph.coordinates.scale((width / advance, 1))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, glyph.xMin)
    table.MathConstants.RadicalVerticalGap.Value = ROOM_UNDER_BAR


def rename(font: TTFont, name: str) -> None:
    """Call a font, its family and its full name so; copyright and licence stay."""
    for record in list(font["name"].names):
        if record.nameID in (1, 3, 4, 16, 21):
            record.string = name
        elif record.nameID in (6, 25):
            record.string = name.replace(" ", "")


if __name__ == "__main__":
    main()
