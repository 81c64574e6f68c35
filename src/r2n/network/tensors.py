"""Frozen groups of tensors that move to a device together."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

CPU = torch.device("cpu")
Group = TypeVar("Group", bound="Tensors")


class Tensors:
    """A frozen dataclass of tensors, of other groups, and of tuples and dicts of these."""

    def to(self: Group, device: torch.device) -> Group:
        """The same on another device."""
        assert is_dataclass(self)
        return replace(self, **{part.name: _moved(getattr(self, part.name), device) for part in fields(self)})


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor | Tensors):
        return value.to(device)
    if isinstance(value, tuple):
        return tuple(_moved(part, device) for part in value)
    if isinstance(value, dict):
        return {key: _moved(part, device) for key, part in value.items()}
    return value
