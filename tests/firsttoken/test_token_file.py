"""Tokens in files: read whole, or refused in one line that shows none of it."""

from pathlib import Path

import pytest

from firsttoken.errors import UsageError
from firsttoken.token_file import token_of


def test_a_token_is_read_without_the_end_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    assert token_of("--token-file", f"{tmp_path}/token") == "s3cret"


@pytest.mark.parametrize("file", [None, ""])
def test_no_file_is_no_token(file: str | None) -> None:
    assert token_of("--token-file", file) == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "holds no token: put it there, on one line"),
        (b"two\nlines", "holds no token"),
        ("schlüssel".encode(), "holds no token"),
        (b"\xff\xfe\x00", "holds no token"),
    ],
    ids=["missing", "empty", "two lines", "not ASCII", "not text"],
)
def test_a_file_without_a_token_is_one_line(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        token_of("--token-file", str(file))
    assert str(refused.value).startswith(f"--token-file {file} {said}")
