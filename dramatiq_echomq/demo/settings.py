"""What the processes of the demo agree on."""

from __future__ import annotations

PREFIX = "emq"
QUEUE = "demo"
SECONDS_PER_JOB = 0.4

#: All in ms, and short, so that nobody has to wait long: a lock that is not renewed ends
#: after this time, checks are this far apart, and a connection must be gone for so long.
LOCK_DURATION = 4_000
STALLED_INTERVAL = 2_000
CRASH_GRACE = 1_000

#: The environment variable that holds the server's URL.
URL_VARIABLE = "ECHOMQ_DEMO_URL"
