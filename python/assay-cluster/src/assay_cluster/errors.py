"""What ends a command."""


class Failure(Exception):
    """The command cannot do what it was asked to: exit status 2."""


class Again(Exception):
    """What a node returned cannot be used; another node may do better."""
