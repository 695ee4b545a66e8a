from __future__ import annotations

import enum


class State(enum.Enum):
    """The states of an :class:`.InFlightJob`, and its methods that lead from one
    to the next::

        fetched
           |
           v     start            finish            acknowledge           end
         TAKEN ---------> RUNNING -----> FINISHING -----------> ACKING ---------> DONE
         |  ^ | |            |              ^                     | put_off        ^
         |  | | +--------- finish ----------+                     +--> RETRYING ---+
         |  | +----------- withdraw ----> RETURNING -------------------------------+
         |  |                |                | doubt: the reply was lost
         |  |                |                v
         |  +----- renewed ----------- UNCERTAIN
         | lose              | lose           | lose
         v                   v                v
        LOST                LOST             LOST

    While a job is finishing, its thread tells the middleware how it ended,
    which may take long.  While it is acking, its thread tells Redis, and the
    same call may fetch the next job for it.  While it is retrying, its thread
    waits to tell Redis again.  From finishing on, nothing interrupts it, and
    it cannot be lost: Redis has the last word about it.
    """

    TAKEN = "taken"
    RUNNING = "running"
    FINISHING = "finishing"
    ACKING = "acking"
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
UNFINISHED = (State.FINISHING, State.ACKING, State.RETRYING)

#: In these states a job has a thread of its own, or waits for one.
BUSY = (State.TAKEN, State.RUNNING, State.FINISHING, State.RETRYING, State.UNCERTAIN)
