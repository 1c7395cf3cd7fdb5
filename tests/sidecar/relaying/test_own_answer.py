import orjson

from sidecar.relaying.own_answer import error_answer


def test_our_own_answers_are_errors_in_the_form_of_openai() -> None:
    answer = error_answer(413, "too long", kind="invalid_request_error", minor=1, keep=False)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 413 Content Too Large"
    assert b"Connection: close" in head
    assert orjson.loads(body) == {
        "error": {"message": "too long", "type": "invalid_request_error", "param": None, "code": 413}
    }
