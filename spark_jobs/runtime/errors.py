"""Failures that a person can act on: one line that says what happened, to what, and what to do."""


class Stop(Exception):
    """The job cannot go on; the message is all that the user needs."""


class Held(Stop):
    """A critical check failed: the gold tables stay as they were."""
