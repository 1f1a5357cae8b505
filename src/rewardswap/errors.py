"""Why a run cannot go on, and why nothing can be written."""


class RunStoppedError(RuntimeError):
    """A run cannot go on, for a reason that its user can remove."""


class StopAskedError(KeyboardInterrupt):
    """Somebody pressed Ctrl-C, and the run has come to a place where it can stop."""


class UnfitCheckpointError(RunStoppedError):
    """A checkpoint holds what is no state of its run; the run folder is as it was."""


class TooManyFailuresError(RunStoppedError):
    """More episodes of one collection broke than the run allows."""


class EngineError(ValueError):
    """A rollout engine elsewhere cannot be used, for a reason that its user can remove."""


class EngineLostError(EngineError):
    """It does not answer; somebody may start it again."""


class UnwrittenError(OSError):
    """The system refuses to write; `filename` is what, `strerror` why."""

    def __str__(self) -> str:
        return f"{self.filename} cannot be written: {self.strerror}"
