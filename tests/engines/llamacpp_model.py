"""A model for llama.cpp, made here: a small llama with random weights and an alphabet for a vocabulary.

It knows every printable ASCII character, newline and some words. Its one special token both begins and ends a text, so
that with `ignore_eos` every token of an answer shows. What it writes means nothing, but llama.cpp loads, schedules and
samples it as any other model. At this width one thread writes a token in about a millisecond.
"""

import json
from pathlib import Path

import gguf
import numpy as np

CONTEXT = 4096
LAYERS, WIDTH, INNER, HEADS = 4, 256, 1024, 4
SPECIAL = "<|text|>"
SPACE, NEWLINE = "Ġ", "Ċ"  # as byte-level BPE writes them
WORDS = ("the", "of", "and", "to", "in", "is", "it", "that", "for", "was", "on")
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"


def write_model(path: Path) -> Path:
    """The model as a GGUF file of 17 MB; the same bytes every time."""
    tokens, merges = _vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL, *[gguf.TokenType.NORMAL] * (len(tokens) - 1)])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_chat_template(TEMPLATE)
    _add_weights(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_tokenizer(folder: Path) -> Path:
    """The same vocabulary as clients load one that count tokens themselves: the files of a Hugging Face tokenizer."""
    tokens, merges = _vocabulary()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": {token: number for number, token in enumerate(tokens)}, "merges": merges}
    special = {"id": 0, "content": SPECIAL, "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokenizer = {"added_tokens": [special | flags], "pre_tokenizer": byte_level, "decoder": byte_level, "model": model}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT}
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"bos_token": SPECIAL, "eos_token": SPECIAL}))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return folder


def _vocabulary() -> tuple[list[str], list[str]]:
    """The tokens, and the merges that make the words from their characters, left to right."""
    tokens = [SPECIAL, *(chr(code) for code in range(33, 127)), SPACE, NEWLINE]
    merges: dict[str, None] = {}
    for word in WORDS:
        left = SPACE
        for character in word:
            merges[f"{left} {character}"] = None
            left += character
    return [*tokens, *(merge.replace(" ", "") for merge in merges)], list(merges)


def _add_weights(writer: gguf.GGUFWriter, words: int) -> None:
    random = np.random.default_rng(1)

    def matrix(name: str, rows: int, columns: int) -> None:
        weights = random.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns, dtype=np.float32)
        writer.add_tensor(f"{name}.weight", weights)

    def ones(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))

    matrix("token_embd", words, WIDTH)
    ones("output_norm")
    matrix("output", words, WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        ones(f"{block}.attn_norm")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"{block}.{part}", WIDTH, WIDTH)
        ones(f"{block}.ffn_norm")
        matrix(f"{block}.ffn_gate", INNER, WIDTH)
        matrix(f"{block}.ffn_up", INNER, WIDTH)
        matrix(f"{block}.ffn_down", WIDTH, INNER)
