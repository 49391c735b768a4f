"""The agents' skills: folders with a SKILL.md that the model reads with `load_skill`.

The framework only logs a bad or missing skill and lets the agent run without it. `check_skills` makes that an error
before the first model call, and `LoadOnlySkillsProvider` offers `load_skill` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from agent_framework import AgentSession, SessionContext, SkillFrontmatter, SkillsProvider, SupportsAgentRun

from wcpod.exceptions import SkillError
from wcpod.podcast.show import Show

GUARDRAILS = "sandbox-guardrails"
AGENTS = ("SearchAgent", "ContentAgent", "GenScriptAgent")

SHIPPED_SKILLS = Path(__file__).resolve().parent.parent / "skills"

_FILE = "SKILL.md"
_LARGEST = 64 * 1024
_PROMPT = """\
Your role and your rules are skills. Load every one of these with `load_skill` before you do anything else:
{skills}"""


def personas(show: Show) -> dict[str, str]:
    """Agent → the name of the skill that says what it does."""
    return dict(zip(AGENTS, (show.skills.search, show.skills.content, show.skills.script), strict=True))


def skill_folders(agent: str, show: Show, skills: Path | None = None) -> tuple[Path, Path]:
    """The two skills of an agent: its persona, and the guardrails that all three share.

    Args:
        skills: The only folder to look in. Without it, the show's own skills go before those that come with wcpod.
    """
    return _folder(personas(show)[agent], show, skills), _folder(GUARDRAILS, show, skills)


def check_skills(show: Show, skills: Path | None = None) -> list[str]:
    """Validate every skill that the pipeline needs; returns their names.

    Raises:
        SkillError: with one line for each thing that is wrong.
    """
    names = sorted({*personas(show).values(), GUARDRAILS})
    problems = [problem for name in names if (problem := _problem(_folder(name, show, skills)))]
    if problems:
        raise SkillError("\n".join(problems))
    return names


def _folder(name: str, show: Show, skills: Path | None) -> Path:
    if skills is not None:
        return skills / name
    own = show.folder / "skills" / name
    return own if own.is_dir() or not (SHIPPED_SKILLS / name).is_dir() else SHIPPED_SKILLS / name


class LoadOnlySkillsProvider(SkillsProvider):
    """A `SkillsProvider` whose only tool is `load_skill`, usable without an approval."""

    @classmethod
    def from_folders(cls, folders: Sequence[Path]) -> LoadOnlySkillsProvider:
        """A provider of exactly the skills in these folders."""
        return cls.from_paths(
            list(folders),
            resource_extensions=(),
            script_extensions=(),
            instruction_template=_PROMPT,
            disable_load_skill_approval=True,
        )

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Advertise the skills and offer `load_skill`.

        Raises:
            SkillError: if the framework found no skill, so that the agent would run without its role.
        """
        await super().before_run(agent=agent, session=session, context=context, state=state)
        dropped = {self.READ_SKILL_RESOURCE_TOOL_NAME, self.RUN_SKILL_SCRIPT_TOOL_NAME}
        context.tools[:] = [tool for tool in context.tools if getattr(tool, "name", None) not in dropped]
        if not any(getattr(tool, "name", None) == self.LOAD_SKILL_TOOL_NAME for tool in context.tools):
            raise SkillError(f"{agent.name} has no skill to load")


def _problem(folder: Path) -> str | None:
    file = folder / _FILE
    if folder.is_symlink() or file.is_symlink():
        return f"{file}: a symbolic link, which the framework skips"
    try:
        data = file.read_bytes()
    except OSError as error:
        return f"{file}: {error.strerror}"
    if len(data) > _LARGEST:
        return f"{file}: larger than {_LARGEST} bytes"
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return f"{file}: not UTF-8"
    if not text.startswith("---\n") or "\n---\n" not in text:
        return f"{file}: does not start with YAML front matter between two lines of ---"
    header, body = text.removeprefix("---\n").split("\n---\n", 1)
    try:
        fields = yaml.safe_load(header)
    except yaml.YAMLError as error:
        return f"{file}: front matter is not YAML: {' '.join(str(error).split())}"
    if not isinstance(fields, dict):
        return f"{file}: front matter is not a mapping"
    for key in ("name", "description"):
        if not isinstance(fields.get(key), str) or not fields[key].strip():
            return f"{file}: front matter has no {key}"
    if fields["name"] != folder.name:
        return f"{file}: name is {fields['name']!r}, but the folder is {folder.name!r}"
    try:
        SkillFrontmatter(name=fields["name"], description=fields["description"])
    except ValueError as error:
        return f"{file}: {error}"
    if not body.strip():
        return f"{file}: has no text after the front matter"
    return None
