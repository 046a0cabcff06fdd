"""Prices and context windows of common models, as lines of text, from the Python package `genai-prices` (MIT).

    prices.py host/crates/models/src/prices/table.tsv

fetches the newest one with pip and writes them to that file, whole or not at all. Of each model: the endpoint's host, the ids that it goes by, its window in tokens, and US dollars for a million tokens
read, read from a cache, written to a cache, and written. Prices of long prompts follow behind `>TOKENS:`. What the
package says of batches, tiers of service, sound and pictures is left out. The data is read without importing the
package, which wants a client for HTTP.
"""

import datetime
import decimal
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# Providers with an endpoint for one of our protocols, and its host. A leading dot stands for any name before it.
HOSTS = {
    "anthropic": "api.anthropic.com",
    "azure": ".openai.azure.com",
    "cerebras": "api.cerebras.ai",
    "cohere": "api.cohere.ai",
    "deepseek": "api.deepseek.com",
    "fireworks": "api.fireworks.ai",
    "google": "generativelanguage.googleapis.com",
    "groq": "api.groq.com",
    "mistral": "api.mistral.ai",
    "moonshotai": "api.moonshot.ai",
    "openai": "api.openai.com",
    "openrouter": "openrouter.ai",
    "perplexity": "api.perplexity.ai",
    "together": "api.together.xyz",
    "x-ai": "api.x.ai",
    "zai": "api.z.ai",
}

FIELDS = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")


def providers(wheel):
    """The package's own records, as dictionaries with the name of their class under `_`."""
    source = zipfile.ZipFile(wheel).read("genai_prices/data.py").decode()
    source = source.replace("from .types import *", "")
    names = {"datetime": datetime, "Decimal": decimal.Decimal}
    for name in set(re.findall(r"\b([A-Z]\w+)\(", source)) - names.keys():
        names[name] = lambda _name=name, **fields: {"_": _name, **fields}
    names["Provider"] = lambda **fields: fields
    # The annotation `list[Provider]` is evaluated too.
    exec(compile(source, "data.py", "exec"), names)
    return names["providers"]


def patterns(match):
    """A clause as patterns in which `*` stands for anything and `#` for a digit; what has none is left out."""
    kind = match["_"]
    if kind == "ClauseOr":
        return [one for part in match["or_"] for one in patterns(part)]
    if kind == "ClauseEquals":
        return [match["equals"]]
    if kind == "ClauseStartsWith":
        return [match["starts_with"] + "*"]
    if kind == "ClauseEndsWith":
        return ["*" + match["ends_with"]]
    if kind == "ClauseContains":
        return ["*" + match["contains"] + "*"]
    if kind == "ClauseRegex":
        found = re.fullmatch(r"\^([\w.@/-]+?)-\\d\{(\d)\}\$", match["regex"])
        return [found[1] + "-" + "#" * int(found[2])] if found else []
    return []


def current(prices, today):
    """The prices that hold today; of those that depend on the time of day, the dearest: a cap must not be passed."""
    if isinstance(prices, dict):
        return prices
    chosen, latest, by_time = prices[0]["prices"], None, []
    for one in prices:
        constraint = one.get("constraint")
        if constraint and constraint["_"] == "TimeOfDateConstraint":
            by_time.append(one["prices"])
        elif constraint and constraint["start_date"] <= today and (latest is None or constraint["start_date"] >= latest):
            latest, chosen = constraint["start_date"], one["prices"]
    return max([chosen, *by_time], key=lambda prices: base(prices.get("input_mtok")))


def base(price):
    return price["base"] if isinstance(price, dict) else price or 0


def number(value):
    return format(value.normalize(), "f") if value is not None else ""


def money(price):
    """A price, and after it that of long prompts."""
    if price is None or isinstance(price, decimal.Decimal):
        return number(price)
    tiers = price["tiers"]
    dearest = max(tier["price"] for tier in tiers)
    return f"{number(price['base'])}>{tiers[0]['start']}:{number(dearest)}"


def rows(wheel, today):
    for provider in providers(wheel):
        host = HOSTS.get(provider["id"])
        for model in provider["models"] if host else []:
            prices = current(model["prices"], today)
            ids = sorted({one.lower() for one in patterns(model["match"])})
            ids = [one for one in ids if not re.search(r"\s", one)]
            # Without both prices it is no model that reads and writes text.
            if not ids or "input_mtok" not in prices or "output_mtok" not in prices:
                continue
            window = str(model.get("context_window") or "")
            yield "\t".join([host, " ".join(ids), window] + [money(prices.get(field)) for field in FIELDS])


def table(wheel, today):
    version = wheel.name.split("-")[1]
    yield f"# Made by `cargo xtask prices` from genai-prices {version} (MIT, copyright Pydantic Services Inc.) on {today}."
    yield "# host, ids, window in tokens, US dollars for a million tokens: read, cached, written to a cache, written"
    yield from sorted(set(rows(wheel, today)))


def main():
    file = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, "genai-prices"]
        fetched = subprocess.run(pip, capture_output=True, text=True)
        if fetched.returncode != 0:
            # Without a network pip prints a line a retry, each with the error of the system in it.
            of_system = re.search(r"\[Errno -?\d+\] ([^']*)'", fetched.stderr)
            last = fetched.stderr.strip().rsplit("\n", 1)[-1]
            reason = of_system[1] if of_system else last
            sys.exit(f"cannot fetch genai-prices with pip: {reason}; name a proxy with "
                     "HTTPS_PROXY, or an index that this machine reaches with PIP_INDEX_URL")
        (wheel,) = pathlib.Path(place).glob("*.whl")
        lines = list(table(wheel, datetime.date.today()))
    new = file.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n")
    os.replace(new, file)
    print(f"{len(lines) - 2} models in {file}")


main()
