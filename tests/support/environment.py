"""The environment that processes get which tests start.

Tests run beside each other in threads, and pytest changes the real environment before and after each of them:
a process that starts at that moment finds it half written (``Bad address``).
"""

from __future__ import annotations

import os

#: As it was when the tests began.
ENVIRONMENT: dict[str, str] = dict(os.environ)
