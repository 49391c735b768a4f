"""Write an episode from a program of your own: here the rehearsal, with a feed item and an audio plug-in.

It prints:

    prepare, SearchAgent, adapt_content, ContentAgent, adapt_script, GenScriptAgent, save_scripts
    260615.mp3, 260615.notes.md, 260615.rss.xml, 260615.segments.json, 260615.simple.zh.txt, 260615.tranditional.zh.txt, episode.json
    {'SearchAgent': 4, 'ContentAgent': 1, 'GenScriptAgent': 2}
"""  # noqa: E501 the second line is one line

import asyncio
import datetime as dt
from pathlib import Path

from wcpod import HyperlightRuntime
from wcpod.podcast.audio import Audio
from wcpod.podcast.feed import base_address
from wcpod.podcast.models import open_model
from wcpod.podcast.products import Products
from wcpod.podcast.progress import Event, StepEnded
from wcpod.podcast.run import run_episode
from wcpod.podcast.show import find_show


def narrate(script: str) -> Audio:
    """Stands in for a text-to-speech service."""
    return Audio(script.encode(), ending="mp3", media_type="audio/mpeg")


SHOW = find_show("world-cup-2026")  # or a folder of your own
steps: list[str] = []


def listen(event: Event) -> None:
    if isinstance(event, StepEnded):
        steps.append(event.step)


episode = asyncio.run(
    run_episode(
        day=dt.date(2026, 6, 15),
        out=Path("outputs"),
        show=SHOW,
        model=open_model("rehearsal", show=SHOW),
        open_runtime=lambda pages: HyperlightRuntime(
            policy=SHOW.pages.policy(), archive=SHOW.sample_pages, record=pages
        ),
        products=Products(base=base_address("https://example.org/podcast"), narrator=narrate),
        checkpoints=True,
        listener=listen,
    )
)
print(", ".join(steps))
print(", ".join(sorted(path.name for path in episode.folder.path.iterdir())))
print({agent: names["execute_code"] for agent, names in episode.record["tool_call_counts"].items()})
