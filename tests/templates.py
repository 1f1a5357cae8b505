"""Chat templates that behave like those of families of models, in words of our own.

Run as a program it prints the table of docs/rollouts.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatting import letter_tokenizer
from rewardswap.envs.base import Observation
from rewardswap.rollout.context import ChatContext


@dataclass(frozen=True)
class Family:
    """A template and its tokens."""

    template: str
    specials: tuple[str, ...]
    end: str
    """The tokenizer's own end token."""
    second_end: str = ""
    """One more end token of the model, if there is one."""

    def tokenizer(self) -> Any:
        return letter_tokenizer(self.specials, self.template, end=self.end)

    def context(self, system: str = "", **settings: Any) -> ChatContext:
        tokenizer = self.tokenizer()
        second = [tokenizer.convert_tokens_to_ids(self.second_end)] if self.second_end else []
        return ChatContext(tokenizer, system, second, **settings)


QWEN_2_5 = """\
{%- macro turn(role, said) -%}{{ '<im>' + role + '\n' + said + '<end>\n' }}{%- endmacro -%}
{%- set told = messages[0].content if messages[0].role == 'system' else 'You are a helper.' -%}
{%- if tools -%}
{{- turn('system', told + '\n# Tools\n' + (tools | map('tojson') | join('\n'))) -}}
{%- else -%}
{{- turn('system', told) -}}
{%- endif -%}
{%- for m in messages if m.role != 'system' -%}{{- turn(m.role, m.content) -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<im>assistant\n' }}{%- endif -%}
"""
"""A system turn of its own where none is given; tools stand in it."""

SMOLLM_2 = """\
{%- macro turn(role, said) -%}{{ '<im>' + role + '\n' + said + '<end>\n' }}{%- endmacro -%}
{%- if messages[0].role != 'system' -%}{{- turn('system', 'You are small.') -}}{%- endif -%}
{%- for m in messages -%}{{- turn(m.role, m.content) -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<im>assistant\n' }}{%- endif -%}
"""
"""A system turn of its own where none is given, and no tools; tests/slow plays the model's own."""

QWEN_3 = """\
{%- macro turn(role, said) -%}{{ '<im>' + role + '\n' + said + '<end>\n' }}{%- endmacro -%}
{%- set at = namespace(user=-1) -%}
{%- for m in messages if m.role == 'user' -%}{%- set at.user = loop.index0 -%}{%- endfor -%}
{%- set users = namespace(seen=-1) -%}
{%- if tools -%}
{{- turn('system', '# Tools\n' + (tools | map('tojson') | join('\n'))) -}}
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{%- set users.seen = users.seen + 1 -%}{%- endif -%}
{%- if m.role == 'assistant' and '</think>' in m.content and users.seen < at.user -%}
{{- turn(m.role, m.content.split('</think>')[-1].lstrip('\n')) -}}
{%- else -%}
{{- turn(m.role, m.content) -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<im>assistant\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}
{{- '<think>\n\n</think>\n\n' -}}
{%- endif -%}
{%- endif -%}
"""
"""Thinking before the latest message of the user is stripped; a switch has the model think nothing,
by an empty thinking in the header, which history does not hold."""

LLAMA_3 = """\
{{- '<begin>' -}}
{%- set given = messages[0].content if messages[0].role == 'system' else '' -%}
{{- '<head>system</head>\n\nToday is a day.\n\n' + given + '<eot>' -}}
{%- for m in messages if m.role != 'system' -%}
{{- '<head>' + m.role + '</head>\n\n' -}}
{%- if tools and loop.first -%}{{- (tools | map('tojson') | join('\n')) + '\n\n' -}}{%- endif -%}
{{- m.content | trim + '<eot>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<head>assistant</head>\n\n' }}{%- endif -%}
"""
"""Roles between header tokens; a turn ends with another token than a text."""

GEMMA = """\
{{- '<bos>' -}}
{%- if messages[0].role == 'system' -%}{{ raise_exception('no role system') }}{%- endif -%}
{%- for m in messages -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}
{{ raise_exception('roles must alternate') }}
{%- endif -%}
{{- '<start>' + ('model' if m.role == 'assistant' else m.role) + '\n' -}}
{{- m.content | trim + '<eot>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start>model\n' }}{%- endif -%}
"""
"""No role of the system: an error."""

MISTRAL = """\
{{- '<s>' -}}
{%- set told = messages[0].content if messages[0].role == 'system' else '' -%}
{%- set rest = messages[1:] if told else messages -%}
{%- for m in rest -%}
{%- if m.role == 'user' -%}
{{- '[INST] ' + (told + '\n\n' if told and loop.last else '') + m.content + '[/INST]' -}}
{%- else -%}
{{- ' ' + m.content + '</s>' -}}
{%- endif -%}
{%- endfor -%}
"""
"""Instructions in brackets, no header of an action; the system's text moves to the latest one."""

IM = ("<im>", "<text-end>")
FAMILIES: Mapping[str, Family] = {
    "SmolLM2": Family(SMOLLM_2, ("<im>",), "<end>"),
    "Qwen2.5": Family(QWEN_2_5, IM, "<end>", "<text-end>"),
    "Qwen3": Family(QWEN_3, IM, "<end>", "<text-end>"),
    "Llama 3": Family(
        LLAMA_3, ("<begin>", "<head>", "</head>", "<text-end>"), "<eot>", "<text-end>"
    ),
    "Gemma": Family(GEMMA, ("<bos>", "<start>", "<eot>"), "<text-end>", "<eot>"),
    "Mistral": Family(MISTRAL, ("<s>", "[INST]", "[/INST]"), "</s>"),
}
PLAIN, THINKING = "go to shelf 1", "<think>where is it</think>\n\ngo to shelf 1"
COLUMNS = (
    ("template", PLAIN),
    ("template", THINKING),
    ("kept", THINKING),
    ("stripped", PLAIN),
    ("stripped", THINKING),
    ("forbidden", PLAIN),
)
"""(setting of thinking, what is said in every turn)."""


def heard(text: str) -> Observation:
    return Observation(text, (), "", 0.0)


def played(context: ChatContext, said: str, turns: int = 3) -> tuple[bool, ...]:
    """Whether the prompts of the turns behind the first extend the one before."""
    conversation = context.conversation(heard("you see a room"))
    end = min(context.end_token_ids)
    extends: list[bool] = []
    for turn in range(turns):
        ids = context.template.tokens(said).tolist()
        conversation.reply(context.template.tokens(said), said, heard(f"room {turn}"))
        assert ids and end not in ids
        extends.append(conversation.extends)
    return tuple(extends)


def cell(family: Family, system: str, thinking: str, said: str) -> str:
    """What the table says of a template: extends, new row, or why it cannot be."""
    try:
        kinds = set(played(family.context(system, thinking=thinking), said))
    except ValueError:
        return "refused"
    return {(True,): "extends", (False,): "new row"}[tuple(kinds)]


def table() -> str:
    """The table of docs/rollouts.md, in Markdown."""
    heads = [f"{setting}, {'plain' if said == PLAIN else 'thinking'}" for setting, said in COLUMNS]
    lines = [row(["template", "system's text", *heads]), row(["---"] * (len(heads) + 2))]
    for name, family in FAMILIES.items():
        for system in ("", "You are in a house."):
            cells = [cell(family, system, setting, said) for setting, said in COLUMNS]
            place = "none"
            if system:
                place = "its own" if family.context(system).system_apart else "in the first message"
            lines.append(row([name, place, *cells]))
    return "\n".join(lines) + "\n"


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(table(), end="")
