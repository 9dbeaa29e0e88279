"""What cannot be done, in a line for the person who asked."""


class Refused(Exception):
    """The message says what is wrong and what would do. Nothing was changed."""
