"""Right and wrong answers to the exercises of "Your GPT"."""

import numpy as np

# The part at fault ----------------------------------------------------------------------------


def loop(parts, agrees):
    found = []
    for name, part in parts.items():
        if not agrees({name: part}):
            found.append(name)
    return found


def filtered(parts, agrees):
    return filter(lambda name: not agrees({name: parts[name]}), parts)


def beside_good_ones(parts, agrees):
    taken, found = {}, []
    for name, part in parts.items():
        if agrees({**taken, name: part}):
            taken[name] = part
        else:
            found.append(name)
    return found


def growing(parts, agrees):
    taken, found = {}, []
    for name, part in parts.items():
        taken[name] = part
        if not agrees(taken):
            found.append(name)
    return found


def left_out(parts, agrees):
    return [n for n in parts if agrees({k: v for k, v in parts.items() if k != n})]


def share(losses, floor):
    return (losses[0] - losses) / (losses[0] - floor)


RIGHT = {
    "capstone_faults": [loop, filtered, beside_good_ones],
    "capstone_share": [
        share,
        lambda losses, floor: 1 - (losses - floor) / (losses[0] - floor),
        lambda losses, floor: np.array([share(losses, floor)[i] for i in range(len(losses))]),
    ],
}

WRONG = {
    "capstone_faults": {
        "one left out at a time": left_out,
        "the first alone": lambda parts, agrees: loop(parts, agrees)[:1],
        "the good ones": lambda parts, agrees: [n for n in parts if agrees({n: parts[n]})],
        "one after another, all kept": growing,
        "all of them": lambda parts, agrees: list(parts),
        "none of them": lambda parts, agrees: [],
    },
    "capstone_share": {
        "over the first": lambda losses, floor: losses / losses[0],
        "towards zero": lambda losses, floor: (losses[0] - losses) / losses[0],
        "in percent": lambda losses, floor: 100 * share(losses, floor),
        "what is left": lambda losses, floor: 1 - share(losses, floor),
        "from the highest": lambda losses, floor: (max(losses) - losses) / (max(losses) - floor),
    },
}
