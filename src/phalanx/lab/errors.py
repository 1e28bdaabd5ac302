"""What can go wrong with a bed, in words for the person who asked for it."""


class LabError(Exception):
    """The bed could not be made or changed; the message says what to do."""
