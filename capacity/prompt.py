"""The body of one request: an OpenAI chat with a prompt of its own, so that no prefix cache flatters the server."""

from random import Random

import orjson

from capacity.schedule import Arrival

# Short, common words: about one token each in the vocabularies of trained models, some five in a byte-level one.
TEXT = """
the river runs under old stone bridge and light falls on water while people walk home with bread fish salt
after long days of rain wind dust song work sleep talk over road hill field tree house door glass
"""
WORDS = TEXT.split()


def chat_body(arrival: Arrival, chance: Random, *, shared_words: int = 0) -> bytes:
    """The JSON body that asks for exactly `output_tokens` tokens where the server honours `ignore_eos`.

    The first `shared_words` of the prompt are the same in every one, as under a common system prompt.
    """
    shared = [WORDS[place % len(WORDS)] for place in range(min(shared_words, arrival.input_words))]
    words = " ".join([*shared, *chance.choices(WORDS, k=arrival.input_words - len(shared))])
    return orjson.dumps(
        {
            "model": arrival.model,
            "messages": [{"role": "user", "content": words}],
            "max_tokens": arrival.output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
        }
    )
