"""Why a run cannot go on."""


class RunStoppedError(RuntimeError):
    """A run cannot go on, for a reason that its user can remove."""


class TooManyFailuresError(RunStoppedError):
    """More episodes of one collection broke than the run allows."""
