"""What the checks of the chapter on tokenisation rest on."""

from reports import solution


def test_the_predicted_numbers_are_those_of_the_toy():
    encode, train = solution("bpe_encode"), solution("bpe_train")
    toy = dict.fromkeys([b"then", b" the", b" other", b" hen", b" hid"], 1)
    ranks = {bytes([i]): i for i in range(256)}
    for left, right in train(toy, 3):
        ranks[left + right] = len(ranks)
    for text, number in solution("tokenize_predict").items():
        head, gap, tail = text.partition(" ")  # a space belongs to the word behind it
        pieces = [head, gap + tail] if head and gap else [text]
        assert sum(len(encode(piece.encode(), ranks)) for piece in pieces) == number
