"""Every exception that wcpod raises on the host.

    WcpodError
    ├── HypervisorUnavailable   no usable /dev/kvm: missing, not permitted, or it cannot boot a guest
    ├── GuestImageError         the guest image is missing, truncated, or made for another version
    ├── SandboxError            the sandbox itself could not do its job
    │   ├── SandboxClosed       used after close()
    │   └── SnapshotError       a snapshot could not be taken, saved, loaded or restored
    ├── FetchPolicyError        a fetch policy with an invalid host, path or bound
    └── PipelineError           the podcast pipeline could not finish
        ├── ShowError           a show's folder is missing or malformed
        ├── SkillError          a skill is missing or malformed
        ├── ModelNotConfigured  the chosen model lacks settings or a package
        ├── ModelError          the model did not end its turn normally
        │   ├── ModelRefused    its service takes no request like this: key, address, name, or kind of server
        │   └── ModelUnavailable  its service cannot be reached, is too slow, too busy, or broken
        ├── ToolSurfaceError    the model would see, or called, a tool that it may not use
        ├── ScriptFormatError   the last agent's text does not hold exactly two scripts
        ├── ScriptRejected      the scripts break the rules (podcast/script_check.py)
        ├── DayExists           the day's episode is there already (podcast/day_folder.py)
        ├── DayInUse            another run holds the day (podcast/day_folder.py)
        ├── ResumeRefused       the run may not go on from the checkpoints there are (podcast/checkpoints.py)
        ├── BaseAddressError    the base address of the feed is invalid (podcast/feed.py)
        ├── AudioNotInstalled   there is no audio plug-in of that name (podcast/audio.py)
        └── TracingNotInstalled traces were asked for without the extra otel (podcast/tracing.py)

A Python error inside the guest is none of these: it is a result (`ExecutionResult.kind == "error"`).
"""


class WcpodError(Exception):
    """Base of every exception of wcpod."""


class HypervisorUnavailable(WcpodError):
    """No usable hypervisor; the message says what is missing and what to do."""


class GuestImageError(WcpodError):
    """The guest image cannot be used; the message names the file and the reason."""


class SandboxError(WcpodError):
    """The sandbox itself could not do its job."""


class SandboxClosed(SandboxError):
    """The sandbox was used after it was closed."""


class SnapshotError(SandboxError):
    """A snapshot could not be taken, saved, loaded or restored."""


class FetchPolicyError(WcpodError, ValueError):
    """A fetch policy that is invalid, such as a host that is not a host name."""


class PipelineError(WcpodError):
    """The podcast pipeline could not finish; nothing of the day was overwritten."""


class ShowError(PipelineError):
    """A show's folder is missing or malformed; a line for each thing, with file, key and what to do."""


class SkillError(PipelineError):
    """A skill is missing or malformed."""


class ModelNotConfigured(PipelineError):
    """The chosen model lacks settings or a package; the message says which."""


class ModelError(PipelineError):
    """The model did not end its turn normally."""


class ModelRefused(ModelError):
    """The model's service takes no request like this one; settings must change before another try."""


class ModelUnavailable(ModelError):
    """The model's service cannot be reached, is too slow, too busy, or broken; the same may work later."""


class ToolSurfaceError(PipelineError):
    """The model would see, or called, a tool that it may not use."""


class ScriptFormatError(PipelineError):
    """The last agent's text does not hold exactly two scripts."""
