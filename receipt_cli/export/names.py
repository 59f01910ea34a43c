"""Names of the formats, without loading them."""

from __future__ import annotations

from typing import Literal, TypeAlias

Name: TypeAlias = Literal["mlflow", "wandb", "tensorboard", "openmetrics", "otlp-json", "parquet", "csv", "in-toto", "bmf"]
