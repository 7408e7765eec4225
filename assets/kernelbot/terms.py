"""What GPU MODE KernelBot goes by, and on what terms its results may be passed on."""

from __future__ import annotations

from typing import Any

SOURCE = "gpumode-kernelbot"
TERMS: dict[str, Any] = {
    "source": SOURCE,
    "name": "GPU MODE KernelBot",
    "url": "https://huggingface.co/datasets/GPUMODE/kernelbot-data",
    "license": "June 9 Researcher Reciprocity License v1.0",
    "attribution": "GPU Mode and the KernelBot dataset",
    "terms": "May be republished with notice and attribution; training an AI system on it obliges to reciprocity.",
    "redistributable": True,
    "freshness_days": 7,
}
