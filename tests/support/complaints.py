"""What users are told about settings that cannot be used."""

from __future__ import annotations

import pytest

from dramatiq_echomq import EchoMQError, SettingError, StalledCheckerMiddleware


def complaint(**keywords) -> str:
    """The error about a keyword, or about what is set elsewhere."""
    with pytest.raises(ValueError) as caught:
        StalledCheckerMiddleware(**keywords)
    assert isinstance(caught.value, SettingError)
    assert isinstance(caught.value, EchoMQError)
    return str(caught.value)
