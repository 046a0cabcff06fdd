"""The agent `{{name}}`: asks a model once, and hands its answer back."""

from dataclasses import dataclass

from longhaul_sdk import Agent, Conversation, Outcome, Task, export


@dataclass
class Reply:
    """What the model is to reply with; the host holds it to the schema of this class."""

    answer: str


@export
class Plugin(Agent):
    def run(self, task: Task) -> Outcome:
        conversation = Conversation("You do the task and answer in JSON.")
        reply = conversation.structured(task.instruction, Reply)
        return Outcome({"answer": reply.answer}, "asked a model")
