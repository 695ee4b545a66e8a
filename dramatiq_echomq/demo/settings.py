"""What the processes of the demo agree on."""

from __future__ import annotations

PREFIX = "emq"
QUEUE = "demo"
SECONDS_PER_JOB = 0.4

#: Both in ms, and short, so that nobody has to wait long: a lock that is not renewed ends
#: after this time, and checks are this far apart.
LOCK_DURATION = 1_000
STALLED_INTERVAL = 1_000

#: The environment variable that holds the server's URL.
URL_VARIABLE = "ECHOMQ_DEMO_URL"
