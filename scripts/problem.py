"""What stops a command."""


class Problem(Exception):
    """What happened and what to do, in one line."""
