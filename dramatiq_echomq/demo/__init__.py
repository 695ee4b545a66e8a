"""The demo: workers are killed, and their jobs come back."""

from __future__ import annotations

import sys

from .processes import Interrupted, Interrupts, Processes
from .screen import make_screen
from .story import Story, StoryFailed


def run() -> int:
    """Run the demo.

    Returns:
      int: The exit code: 0, 1 when the demo did not go as it should, or
      128 and the number of the signal that ended it.
    """
    with Interrupts() as interrupts:
        try:
            with Processes() as processes, make_screen() as screen:
                story = Story(processes, screen, interrupts)
                story.tell()
            screen.print_summary(story.summary())
        except Interrupted as interruption:
            print(f"Interrupted. {Processes.FAREWELL}", file=sys.stderr)
            return 128 + interruption.signum
        except StoryFailed as failure:
            print(f"dramatiq-echomq demo: {failure}", file=sys.stderr)
            return 1
    return 0
