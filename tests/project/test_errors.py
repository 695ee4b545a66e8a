"""The exceptions of the package, whichever way they go."""

from __future__ import annotations

import copy
import pickle

import pytest

from dramatiq_echomq import errors
from dramatiq_echomq.broker.encoding import UndecodableJob
from dramatiq_echomq.broker.schedulers import SchedulerStopped

from ..support.job_data import message

ERRORS = [
    errors.EchoMQError("said"),
    errors.SettingError("lock_duration", "keyword argument", 30, "a whole number"),
    errors.UnknownSetting("prefx", "keyword argument", ["prefix"]),
    errors.ServerTooOld("5.0", "localhost:6379"),
    errors.QueueRefused("no queue"),
    errors.QueueNotFound("images", "emq", ["image"]),
    errors.JobNotFound("images", "7", ["videos"]),
    errors.JobFailed("child 7 failed", "web1:1"),
    errors.JobStalled("job stalled more than allowable limit", 2, "web1:1"),
    errors.MessagesNotAdded(ValueError("no"), [message(1)], uncertain=[message(2)]),
    UndecodableJob("no message"),
    SchedulerStopped("no pattern"),
]


def all_kinds(kind: type = errors.EchoMQError) -> set[type]:
    return {kind}.union(*map(all_kinds, kind.__subclasses__()))


def test_each_kind_is_looked_at_here():
    own = {kind for kind in all_kinds() if kind.__module__.startswith("dramatiq_echomq.")}
    assert {type(error) for error in ERRORS} == own


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("treat", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_pickled_and_copied(error, treat):
    """As it is on its way out of a process pool, which would break for good."""
    same = treat(error)
    assert (type(same), str(same), vars(same)) == (type(error), str(error), vars(error))
