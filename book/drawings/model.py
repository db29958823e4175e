"""The whole model: a small map, of which any part can be lit, and a large one with links."""

from drawings.parts import Panel, arrow, box, drawing, join, link, note, panel, text

PARTS = {  # by the name under which a page lights it: what is lit
    "text": "the text",
    "tokens": "the tokens, into which the text is cut",
    "token-embedding": "the token embedding",
    "positions": "the positions, which are added to the embedding",
    "embedding": "the token embedding and the positions, which are added",
    "attention": "attention, inside the block",
    "positions-in-attention": "the positions and attention",
    "mlp": "norm and MLP, inside the block",
    "block": "the block",
    "stack": "the whole model, from the embedding to the logits",
    "head": "the head, which gives the logits",
    "sampling": "sampling, which picks the next token",
    "cache": "the cache of attention",
    "training": "the loss and the training, which change the model",
    "tensors": "tensors, which carry everything",
    "gradients": "gradients, which flow back through everything",
}
SEVERAL = {
    "embedding": ("token-embedding", "positions"),
    "positions-in-attention": ("positions", "attention"),
}


@drawing
def model(lit: str = "") -> list[Panel]:
    """A small map of the model.

    From top to bottom: a text is cut into tokens; the embedding of each token and its position
    are added; the sum runs down through a block, to which attention with its cache and then the
    MLP add, and which is repeated; a head gives the logits; sampling picks the next token,
    which goes back to the text. Below, loss and training, from which a dotted arrow leads back
    into the model, and tensors and gradients, which carry all of it.
    """
    on = SEVERAL.get(lit, (lit,))

    def part(
        x: float, y: float, width: float, name: str, words: str, role: str = "token"
    ) -> list[str]:
        shape = box(
            x,
            y,
            width,
            24,
            role if name in on else "muted",
            radius=5,
            kind="full" if name in on else "box",
        )
        ink = "paper" if name in on else "ink"
        return [shape, text(x + width / 2, y + 12, words, ink, size=12.5 if len(words) < 9 else 12)]

    def frame(x: float, y: float, width: float, height: float, name: str) -> str:
        role, kind = ("token", "box") if name in on else ("muted", "dashed")
        return box(x, y, width, height, role, kind=kind, radius=8)

    return [
        panel(
            196,
            434,
            frame(18, 68, 158, 244, "stack"),
            frame(26, 146, 142, 116, "block"),
            part(53, 1, 80, "text", "text"),
            arrow((93, 25), (93, 37)),
            part(53, 37, 80, "tokens", "tokens"),
            arrow((61, 61), (61, 78)),
            part(26, 78, 74, "token-embedding", "embedding"),
            part(106, 78, 62, "positions", "position", "position"),
            arrow((61, 102), (61, 122), (84, 122), head=False),
            arrow((137, 102), (137, 122), (102, 122), head=False),
            arrow((93, 131), (93, 138), (42, 138), (42, 156), head=False),
            join(93, 122),
            arrow((42, 154), (42, 270), (93, 270), (93, 278)),
            arrow((42, 154), (42, 168), (58, 168)),
            arrow((89, 180), (89, 194), (51, 194)),
            part(58, 156, 62, "attention", "attention", "query"),
            part(124, 156, 40, "cache", "cache", "key"),
            arrow((42, 206), (42, 220), (58, 220)),
            arrow((89, 232), (89, 246), (51, 246)),
            part(58, 208, 62, "mlp", "MLP", "value"),
            join(42, 194),
            join(42, 246),
            note(148, 250, "× N"),
            part(34, 278, 126, "head", "logits"),
            arrow((93, 302), (93, 325)),
            part(53, 325, 80, "sampling", "sampling", "query"),
            arrow(
                (133, 337),
                (189, 337),
                (189, 13),
                (133, 13),
                role="query" if lit == "sampling" else "muted",
            ),
            part(18, 367, 158, "training", "loss and training", "loss"),
            arrow((18, 379), (6, 379), (6, 200), (18, 200), role="loss", kind="dotted"),
            part(18, 405, 72, "tensors", "tensors"),
            part(98, 405, 78, "gradients", "gradients", "loss"),
        )
    ]


@drawing
def map_of_the_book() -> list[Panel]:
    """A map of GPT, every part of which has a chapter.

    From top to bottom: a text is cut into tokens. Inside the GPT, the embedding layer adds token
    embeddings and positional encodings; a transformer block, repeated, adds multi-head attention
    and then a normalised MLP to what it receives; the result is a score for every possible next
    token. Sampling picks one, which joins the text, and everything runs again. Training adjusts
    the GPT. Tensors and autograd carry all of it.
    """
    stream = 42

    def part(
        place: tuple[float, float, float, float],
        page: str,
        name: str,
        remark: str,
        role: str = "token",
    ) -> str:
        return link(page, f"{name}: {remark}", box(*place, role, name, remark))

    def frame(
        place: tuple[float, float, float, float], page: str, name: str, remark: str, role: str
    ) -> str:
        shape = box(*place, role, kind="frame", radius=9)
        left = place[0] + 12 + 26 * (place[0] < stream and place[1] > 300)  # beside the stream
        words = text(left, place[1] + 18, name, role, anchor="start", face="bold")
        return link(page, f"{name}: {remark}", shape, words)

    return [
        panel(
            340,
            820,
            text(158, 14, "… came along with the", size=17, face="italic"),
            arrow((162, 26), (162, 52)),
            part((42, 52, 240, 44), "foundations/tokenization", "Tokenization",
                 "text becomes integers"),
            arrow((162, 96), (162, 146)),
            frame((6, 116, 314, 468), "transformer/gpt", "GPT", "all the parts together", "muted"),
            frame((16, 146, 294, 132), "embeddings/embedding-layer", "Embedding layer",
                  "tokens and positions joined", "token"),
            part((26, 176, 134, 52), "embeddings/token-embeddings", "Embeddings",
                 "what each token is"),
            part((166, 176, 134, 52), "embeddings/positional-encodings", "Positions",
                 "where each stands", "position"),
            arrow((93, 228), (93, 254), (153, 254), head=False),
            arrow((233, 228), (233, 254), (171, 254), head=False),
            arrow((162, 263), (162, 292), (stream, 292), (stream, 538), (162, 538), (162, 552)),
            join(162, 254),
            frame((16, 306, 294, 214), "transformer/block", "Transformer block",
                  "residual connections around attention and MLP", "norm"),
            note(298, 324, "repeated", anchor="end"),
            frame((66, 336, 234, 92), "attention/multi-head", "Multi-head attention",
                  "several at once", "query"),
            part((76, 366, 214, 52), "attention/scaled-dot-product", "Attention",
                 "how tokens look at each other", "query"),
            part((66, 440, 234, 56), "transformer/normalisation-and-mlp", "Norm and MLP",
                 "what each token makes of it", "value"),
            arrow((stream, 352), (66, 352)),
            arrow((66, 418), (51, 418)),
            arrow((stream, 454), (66, 454)),
            arrow((66, 486), (51, 486)),
            join(stream, 418),
            join(stream, 486),
            note(162, 564, "a score for every possible next token"),
            arrow((162, 576), (162, 608)),
            part((42, 608, 240, 44), "generation/sampling", "Sampling",
                 "one token is chosen, and again", "query"),
            arrow((162, 652), (162, 674)),
            text(162, 684, "drum", "query", size=17, face="italic"),
            arrow((186, 685), (334, 685), (334, 14), (262, 14), role="query"),
            part((6, 712, 314, 46), "training/data-and-loss", "Training",
                 "data, loss and the steps that lower it", "loss"),
            arrow((24, 712), (24, 584), role="loss", kind="dotted"),
            part((6, 770, 150, 46), "foundations/tensors", "Tensors",
                 "arrays and their shapes", "norm"),
            part((170, 770, 150, 46), "foundations/autograd", "Autograd",
                 "how all of it learns", "loss"),
        )
    ]  # fmt: skip
