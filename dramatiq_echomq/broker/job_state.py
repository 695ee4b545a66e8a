from __future__ import annotations

import enum


class State(enum.Enum):
    """See :class:`.in_flight.InFlightJob`."""

    TAKEN = "taken"
    RUNNING = "running"
    FINISHING = "finishing"
    RETRYING = "retrying"
    DONE = "done"
    LOST = "lost"
    RETURNING = "returning"
    UNCERTAIN = "uncertain"


#: In these states a job is not this process's any more.
ENDED = (State.DONE, State.LOST)

#: In these states a job must not be started, and is not finished.
REFUSED = (*ENDED, State.RETURNING)

#: In these states a job has run, and Redis is to be told how it ended.
UNFINISHED = (State.FINISHING, State.RETRYING)

#: In these states a job has a thread of its own, or waits for one.
BUSY = (State.TAKEN, State.RUNNING, State.RETRYING, State.UNCERTAIN)
