"""The agent `reporter`: reason, act, observe, until the model says it is done or the steps are used up."""

from dataclasses import dataclass
from typing import Annotated

from longhaul_sdk import Agent, Field, Outcome, Task, export, react, read_as

PROMPT = "You write a short report about what you are asked. Use the tools where they help."


@dataclass
class Settings:
    """What the operator may write for this agent."""

    prompt: str = PROMPT
    steps_max: Annotated[int, Field(minimum=1, maximum=100)] = 8


@export
class Reporter(Agent):
    """Answers with what the model finished with."""

    def run(self, task: Task) -> Outcome:
        settings = read_as(Settings, task.settings, "settings")
        return react(task, prompt=settings.prompt, steps_max=settings.steps_max)
