//! A model that behaves, on a small repository in Python: it plans with checks, writes what is asked for, and reads
//! what others wrote.

use super::lab::Lab;
use serde_json::{Value, json};

/// A goal in free words, as a newcomer writes it.
pub const GOAL: &str = "\
# Discounts

Customers who buy for 100 or more get 10 % off. The cart shows what is to be paid after the discount, and the README \
tells customers about it with an example.
";

/// The repository before its first use with Longhaul.
pub const FILES: [(&str, &str); 5] = [
    ("shop/__init__.py", "\"\"\"A small shop.\"\"\"\n"),
    (
        "shop/cart.py",
        "class Cart:\n    \"\"\"What a customer wants to buy.\"\"\"\n\n    def __init__(self):\n        self.lines = []\n\n    \
         def add(self, name, price, count=1):\n        if count < 1:\n            raise ValueError(\"count is 1 or more\")\n        \
         self.lines.append((name, price, count))\n\n    def total(self):\n        \
         return sum(price * count for _, price, count in self.lines)\n",
    ),
    (
        "shop/money.py",
        "def shown(amount):\n    \"\"\"An amount as customers read it.\"\"\"\n    return f\"{amount:.2f} EUR\"\n",
    ),
    (
        "tests/test_cart.py",
        "from shop.cart import Cart\n\n\ndef test_total():\n    cart = Cart()\n    cart.add(\"tea\", 4, 2)\n    \
         assert cart.total() == 8\n",
    ),
    ("README.md", "# Shop\n\nA cart, and amounts as customers read them.\n"),
];

const PRICING: &str = "\
def discount(total):
    \"\"\"What a customer gets off.\"\"\"
    return total / 10 if total >= 100 else 0
";

const CART: &str = "\
from shop.pricing import discount


class Cart:
    \"\"\"What a customer wants to buy.\"\"\"

    def __init__(self):
        self.lines = []

    def add(self, name, price, count=1):
        if count < 1:
            raise ValueError(\"count is 1 or more\")
        self.lines.append((name, price, count))

    def total(self):
        return sum(price * count for _, price, count in self.lines)

    def to_pay(self):
        total = self.total()
        return total - discount(total)
";

const README: &str = "\
# Shop

A cart, and amounts as customers read them.

Who buys for 100 or more gets 10 % off: of a cart of 120.00 EUR, 108.00 EUR are to be paid.
";

/// Tests in the style of pytest, by the module's real name.
pub const CHECK_DISCOUNT: &str = "\
import pytest

from shop.pricing import discount


@pytest.mark.parametrize(\"total, expected\", [(99.99, 0), (100, 10), (250, 25)])
def test_from_100_on(total, expected):
    assert discount(total) == pytest.approx(expected)
";

/// Tests in the style of unittest.
const CHECK_CART: &str = "\
import unittest

from shop.cart import Cart


class ToPay(unittest.TestCase):
    def test_after_the_discount(self):
        cart = Cart()
        cart.add(\"chair\", 60, 2)
        self.assertEqual(cart.total(), 120)
        self.assertEqual(cart.to_pay(), 108)
";

/// Makes the repository of the project, with its first commit, before `longhaul init`.
pub fn repository(lab: &Lab) {
    let project = lab.project();
    for (path, text) in FILES {
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "A shop"]] {
        lab.git(args);
    }
}

/// The plan, with what decides each criterion.
pub fn plan(check_discount: &str) -> Value {
    let feature = |id: &str, category: &str, instruction: &str, criteria: Value, depends_on: Value| {
        json!({
            "id": id, "title": format!("Add {id}"), "instruction": instruction, "category": category, "priority": 5,
            "criteria": criteria, "depends_on": depends_on,
        })
    };
    let by = |text: &str, check: &str| json!({ "text": text, "check": check });
    json!({ "question": "", "features": [
        feature(
            "discount", "functional", "Write discount(total) in shop/pricing.py: 10 % from 100 on, else 0.",
            json!([by("discount(total) is 10 % from 100 on, and 0 below", check_discount)]), json!([]),
        ),
        feature(
            "to-pay", "functional", "Give Cart in shop/cart.py a method to_pay(): the total after the discount.",
            json!([by("to_pay() is the total after the discount", CHECK_CART)]), json!(["discount"]),
        ),
        feature(
            "readme", "documentation", "Tell customers about the discount in README.md.",
            json!([by("README.md explains the discount with an example", "")]), json!(["to-pay"]),
        ),
    ] })
}

/// The replies of the model; `plan` returns its plan for the planner's prompt.
pub fn reply(body: &Value, plan: impl Fn(&str) -> Value) -> Option<Value> {
    let messages = body["messages"].as_array()?;
    let said = |message: &Value| match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let (system, prompt) = (said(messages.first()?), said(messages.get(1)?));
    if system.starts_with("You plan software projects") {
        return Some(plan(&prompt).to_string().into());
    }
    if system.starts_with("You are a strict reviewer") {
        return Some(judged(&prompt).to_string().into());
    }
    let steps = messages.iter().filter(|message| message["role"] == "assistant").count();
    Some(worked(&prompt, steps, &body["tools"]))
}

/// A reviewer who reads: what the evidence shows passes.
fn judged(prompt: &str) -> Value {
    let (read, criteria) = prompt.split_once("The criteria:").unwrap_or((prompt, ""));
    let shows = read.contains("108.00 EUR are to be paid");
    let mark = if shows { "PASS" } else { "FAIL" };
    let ids = criteria.lines().filter_map(|line| line.strip_prefix("- ")?.split(':').next());
    let of = |id: &str| json!({ "criterion": id, "why": "the example is there", "mark": mark });
    json!({ "judgements": ids.map(of).collect::<Vec<_>>() })
}

/// A programmer who writes one file and is done, with calls of tools where the request offers them.
fn worked(prompt: &str, steps: usize, tools: &Value) -> Value {
    let file = [
        ("Write discount(total)", "shop/pricing.py", PRICING),
        ("Give Cart in shop/cart.py", "shop/cart.py", CART),
        ("Tell customers about", "README.md", README),
    ]
    .into_iter()
    .find(|(instruction, ..)| prompt.contains(instruction) && steps == 0);
    let mut names = tools.as_array().into_iter().flatten().filter_map(|tool| tool["function"]["name"].as_str());
    let native = names.find(|name| name.contains("files") && name.ends_with("write"));
    match (file, native) {
        (Some((_, path, content)), Some(name)) => {
            let arguments = json!({ "path": path, "content": content }).to_string();
            let call =
                json!({ "id": "call_1", "type": "function", "function": { "name": name, "arguments": arguments } });
            json!({ "role": "assistant", "content": null, "tool_calls": [call] })
        }
        (Some((_, path, content)), None) => {
            let args = json!({ "path": path, "content": content });
            json!({ "thought": "write it", "action": "files.write", "args": args }).to_string().into()
        }
        (None, _) => {
            json!({ "thought": "done", "action": "finish", "answer": "wrote it, as asked", "confidence": 0.9 })
                .to_string()
                .into()
        }
    }
}
