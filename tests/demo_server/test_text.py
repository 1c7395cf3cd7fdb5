import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_server.text import BOS, EOS, PRINTABLE, TURN, VOCABULARY, TextStream, encode, encode_chat


def read_all(data: bytes, stops: tuple[str, ...] = ()) -> tuple[list[str], str | None]:
    """The pieces a client would be shown, up to the stop if one is met."""
    stream = TextStream(stops)
    pieces = []
    for byte in data:
        pieces.append(stream.push(byte))
        if stream.stop_reason is not None:
            break
    return [*pieces, stream.flush()], stream.stop_reason


@given(st.binary(max_size=40))
def test_the_pieces_of_any_bytes_are_their_decoding(data: bytes) -> None:
    pieces, _ = read_all(data)
    assert "".join(pieces) == data.decode("utf-8", errors="replace")


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_a_character_comes_whole_with_its_last_byte(text: str) -> None:
    pieces, _ = read_all(text.encode())
    assert "".join(pieces) == text
    assert [piece for piece in pieces if piece] == list(text)


@given(st.text("ab\u00e9", max_size=30), st.lists(st.text("ab\u00e9", min_size=1, max_size=4), max_size=3))
def test_text_is_cut_before_the_stop_that_ends_first(text: str, stops: list[str]) -> None:
    pieces, reason = read_all(text.encode(), tuple(stops))
    shown = "".join(pieces)
    ends = [(end, at, stop) for stop in stops if (at := text.find(stop)) >= 0 for end in [at + len(stop)]]
    if not ends:
        assert (shown, reason) == (text, None)
    else:
        first_end = min(ends)[0]
        # Several may end on the same character; the one that began first cuts most, and names itself.
        start, stop = min((at, stop) for end, at, stop in ends if end == first_end)
        assert (shown, reason) == (text[:start], stop)


@given(st.text("abc", max_size=30))
def test_only_a_possible_beginning_of_a_stop_is_held_back(text: str) -> None:
    stream = TextStream(("abca",))
    shown = ""
    for end, byte in enumerate(text.encode(), 1):
        shown += stream.push(byte)
        if stream.stop_reason is not None:
            break
        held = text[:end].removeprefix(shown)
        assert shown + held == text[:end]
        assert held in ("", "a", "ab", "abc")


def test_specials_have_no_text() -> None:
    stream = TextStream()
    assert [stream.push(token) for token in (BOS, ord("a"), TURN, EOS)] == ["", "a", "", ""]


def test_half_a_character_at_the_end_is_replaced() -> None:
    stream = TextStream()
    assert [stream.push(byte) for byte in "€".encode()[:2]] == ["", ""]
    assert stream.flush() == "\ufffd"


def test_nothing_follows_a_stop() -> None:
    stream = TextStream(("b",))
    assert [stream.push(byte) for byte in b"ab"] == ["a", ""]
    assert (stream.push(ord("c")), stream.flush(), stream.stop_reason) == ("", "", "b")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", (BOS,)), ("a€", (BOS, 97, 0xE2, 0x82, 0xAC)), ("\ud800", (BOS, ord("?")))],
)
def test_a_prompt_is_its_bytes(text: str, tokens: tuple[int, ...]) -> None:
    assert encode(text) == tokens


def test_a_chat_ends_where_the_answer_begins() -> None:
    tokens = encode_chat([("user", "hi"), ("assistant", "yo")])
    assert tokens == (
        *(BOS, TURN, *b"user\nhi", EOS),
        *(TURN, *b"assistant\nyo", EOS),
        *(TURN, *b"assistant\n"),
    )


def test_every_token_has_a_place_in_the_vocabulary() -> None:
    assert max(BOS, EOS, TURN) < VOCABULARY
    assert bytes(PRINTABLE).decode().isprintable()
