"""vLLM as a process: a tiny model of random weights, made here, served on a free port, ended by its id.

The model writes one printable character a token, so that every token of an answer is a chunk with text in it: then
vLLM's own moment of the first token and the one that a client sees are the same.
"""

import contextlib
import json
import os
import re
import secrets
import signal
import string
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.engines.vllm_install import FOLDER, ROOT
from tests.ports import free_ports
from tests.sidecar.process import environment

VLLM = FOLDER / "bin" / "vllm"
START_S = 600.0
STOP_S = 30.0
MAX_TOKENS = 1024
BLOCK_TOKENS = 32
BLOCKS = 40  # 1,248 tokens (one block is vLLM's own): few long answers at once fill it
SMALL = ("--load-format", "dummy", "--dtype", "float32", "--enforce-eager", "--max-num-seqs", "16")
SMALL += (
    "--max-model-len",
    f"{MAX_TOKENS}",
    "--block-size",
    f"{BLOCK_TOKENS}",
    "--num-gpu-blocks-override",
    f"{BLOCKS}",
)
"""What the tiny model needs, and a machine without an accelerator."""


@dataclass(frozen=True)
class Engine:
    """A running vLLM; `model` is a name that no other server has."""

    popen: subprocess.Popen[bytes]
    port: int
    model: str
    tokenizer: Path
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def metrics(self) -> dict[str, float]:
        """Every sample of its own page, by name and the labels that tell samples of a name apart."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=STOP_S) as answer:
            text = answer.read().decode()
        return {
            " ".join(
                [s.name, *(f"{k}={v}" for k, v in sorted(s.labels.items()) if k not in ("engine", "model_name"))]
            ): (s.value)
            for family in text_string_to_metric_families(text)
            for s in family.samples
        }

    def yield_to_others(self) -> None:
        """Let those that compute give way to those that talk and take times: two cores are too few for all."""
        for pid, _ in _below(self.popen.pid):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(ProcessLookupError):
                    os.setpriority(os.PRIO_PROCESS, int(thread.name), 10)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """The engine stands still in the middle of its work, and its API server still answers."""
        cores = [pid for pid, name in _below(self.popen.pid) if name.startswith("VLLM::Engine")]
        assert cores
        for pid in cores:
            os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(0.2)  # what it had sent before is taken in
            yield
        finally:
            for pid in cores:
                os.kill(pid, signal.SIGCONT)


def _below(pid: int) -> Iterator[tuple[int, str]]:
    """Every process that a process has begun, and theirs, by id and name."""
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError):  # a thread or a process that has just ended
            for child in map(int, listed.read_text().split()):
                yield child, Path(f"/proc/{child}/comm").read_text().strip()
                yield from _below(child)


def offline(**environ: str) -> dict[str, str]:
    """An environment in which vLLM asks nobody for anything, and finds the middleware of this working tree."""
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    return environment(PYTHONPATH=str(ROOT), **quiet, **environ)


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, **environ: str) -> Iterator[Engine]:
    """`vllm serve` with these flags; gone afterwards with all that it began."""
    write_model(folder / "model")
    engine_name, port = f"tiny-{secrets.token_hex(4)}", free_ports(1)[0]
    command: list[str | Path] = [VLLM, "serve", folder / "model", "--served-model-name", engine_name]
    command += ["--host", "127.0.0.1", "--port", str(port), *SMALL, *arguments]
    log = folder / "vllm.log"
    with log.open("wb") as out:
        popen = subprocess.Popen(
            command, cwd=folder, env=offline(**environ), stdout=out, stderr=out, start_new_session=True
        )
    try:
        engine = Engine(popen, port, engine_name, folder / "model", log)
        _await(engine)
        engine.yield_to_others()
        yield engine
    finally:
        popen.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(STOP_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, signal.SIGKILL)
        popen.wait()


def _await(engine: Engine) -> None:
    """Wait until this very server answers: by its model's name."""
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        assert engine.popen.poll() is None, engine.log.read_text()[-3000:]
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{engine.url}/v1/models", timeout=5) as answer:
            assert engine.model in answer.read().decode()
            return
        time.sleep(0.5)
    raise AssertionError(f"not ready in time: {engine.log.read_text()[-3000:]}")


PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}


def asking(kind: str, prompt: str, tokens: int, **more: object) -> dict[str, object]:
    """A request for so many tokens, in one of the forms that vLLM answers."""
    asked: dict[str, object] = {"temperature": 0, **more}
    if kind == "responses":
        return {**asked, "input": prompt, "max_output_tokens": tokens}
    if kind == "completions":
        return {**asked, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True}
    never_ends = {"ignore_eos": True} if kind == "chat" else {}
    return {**asked, "messages": [{"role": "user", "content": prompt}], "max_tokens": tokens, **never_ends}


# The model.

END = "~"  # a token as visible as the others


def write_model(folder: Path) -> None:
    """A Llama of two layers whose vocabulary is the printable characters; vLLM makes its weights up."""
    folder.mkdir(exist_ok=True)
    others = re.sub(re.escape(END), "", "\n " + string.ascii_letters + string.digits + string.punctuation)
    characters = [{" ": "Ġ", "\n": "Ċ"}.get(one, one) for one in END + others]
    files = {
        "config.json": _config(len(characters)),
        "tokenizer.json": _tokenizer({one: number for number, one in enumerate(characters)}),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "model_max_length": MAX_TOKENS,
            "chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ",
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def _config(characters: int) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": characters,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": MAX_TOKENS,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": 0,
        "torch_dtype": "float32",
    }


def _tokenizer(vocabulary: dict[str, int]) -> dict[str, object]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [],
        },
    }
