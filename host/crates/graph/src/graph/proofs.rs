//! Proofs that a use which could change a value leaves it as it is, drawn from all steps of a graph together.
//!
//! A name has a kind if every step that binds it binds it to a value of that kind, wherever in the order it stands. A
//! step that may bind any name, a requested edge against insertion order, and a change that was seen in a run end the
//! proofs that they touch. Each proof is noted with the names that it looked at, so that it is looked at again when the
//! kind of one of them changes, and a change of a step costs in proportion to the steps that it matters to.

use super::node::Node;
use super::places::Place;
use crate::analysis::{
    ANY_METHOD, DottedName, NameUse, Obligation, ValueKind, VariableName, is_fresh, is_inert, leaves,
};
use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Most functions that one proof passes through. With more, it is none.
const FUNCTIONS_MAX: usize = 64;

/// The proofs of one graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Proofs {
    names: HashMap<VariableName, Bindings, RandomState>,
    /// Methods that steps define; the count says how many do.
    methods: HashMap<VariableName, Bindings, RandomState>,
    /// Steps that may bind any name.
    everything: Bindings,
    /// There are requested edges against insertion order: a proof that ends could close a cycle with one.
    is_off: bool,
    /// The names that the proofs of a step looked at, and the methods.
    looked: HashMap<Place, Looked, RandomState>,
    /// Steps whose proofs are to be looked at again.
    due: BTreeSet<Place>,
}

/// The bindings of one name in all steps.
#[derive(Clone, Debug, Default)]
struct Bindings {
    /// Steps that bind it to a value of no known kind.
    unknown: usize,
    /// Kinds, each with the number of steps.
    kinds: Vec<(ValueKind, usize)>,
    /// Steps whose proofs looked at it.
    watchers: BTreeSet<Place>,
}

#[derive(Clone, Debug, Default)]
struct Looked {
    names: Vec<VariableName>,
    methods: Vec<VariableName>,
}

impl Bindings {
    fn kind(&self) -> Option<&ValueKind> {
        match self.kinds.as_slice() {
            [(kind, _)] if self.unknown == 0 => Some(kind),
            _ => None,
        }
    }

    fn is_bound(&self) -> bool {
        self.unknown > 0 || !self.kinds.is_empty()
    }

    fn add(&mut self, kind: Option<&ValueKind>) {
        let Some(kind) = kind else {
            self.unknown += 1;
            return;
        };
        match self.kinds.iter_mut().find(|(known, _)| known == kind) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((kind.clone(), 1)),
        }
    }

    fn take(&mut self, kind: Option<&ValueKind>) {
        let Some(kind) = kind else {
            self.unknown = self.unknown.saturating_sub(1);
            return;
        };
        if let Some(at) = self.kinds.iter().position(|(known, _)| known == kind) {
            self.kinds[at].1 -= 1;
            if self.kinds[at].1 == 0 {
                self.kinds.swap_remove(at);
            }
        }
    }

    /// Changes the bindings; true when that may matter to a proof.
    fn change(&mut self, change: impl FnOnce(&mut Self)) -> bool {
        if self.watchers.is_empty() {
            change(self);
            return false;
        }
        let before = (self.kind().cloned(), self.is_bound());
        change(self);
        before != (self.kind().cloned(), self.is_bound())
    }
}

impl Proofs {
    /// Reserves capacity for names.
    pub(super) fn reserve(&mut self, names: usize) {
        self.names.reserve(names);
    }

    /// Takes in what a step binds.
    pub(super) fn bind(&mut self, node: &Node) {
        self.note(node, Bindings::add);
    }

    /// Forgets what a step binds.
    pub(super) fn unbind(&mut self, node: &Node) {
        self.note(node, Bindings::take);
    }

    fn note(&mut self, node: &Node, note: fn(&mut Bindings, Option<&ValueKind>)) {
        let Self { names, methods, everything, due, .. } = self;
        let mut one = |bindings: &mut Bindings, kind: Option<&ValueKind>| {
            if bindings.change(|bindings| note(bindings, kind)) {
                due.extend(&bindings.watchers);
            }
        };
        let seen = &node.observed().writes;
        for known in node.analysis.names().iter().filter(|known| known.is_changed()) {
            let is_seen = seen.contains(&known.name);
            if known.is_changed_for_certain() || is_seen {
                let is_bound = known.written && !known.deleted && !is_seen;
                let is_kept = known.mutated.is_none() || known.proof.is_some();
                let kind = known.bound.as_ref().filter(|_| is_bound && is_kept);
                one(names.entry(known.name.clone()).or_default(), kind);
            }
        }
        for name in seen.iter().filter(|name| node.analysis.of(name).is_none_or(|known| !known.is_changed())) {
            one(names.entry(name.clone()).or_default(), None);
        }
        for name in node.analysis.methods() {
            one(methods.entry(name.clone()).or_default(), None);
        }
        if node.analysis.sees_all().is_some() {
            one(everything, None);
        }
    }

    /// Proves nothing any more, or proves again.
    pub(super) fn turn_off(&mut self, is_off: bool) {
        if self.is_off != is_off {
            self.is_off = is_off;
            self.due.extend(&self.everything.watchers);
        }
    }

    /// The steps whose proofs are to be looked at again.
    pub(super) fn take_due(&mut self) -> BTreeSet<Place> {
        std::mem::take(&mut self.due)
    }

    /// Forgets the proofs of a step.
    pub(super) fn forget(&mut self, place: Place) {
        let Some(Looked { names, methods }) = self.looked.remove(&place) else { return };
        for name in names {
            if let Some(bindings) = self.names.get_mut(&name) {
                bindings.watchers.remove(&place);
            }
        }
        for name in methods {
            if let Some(bindings) = self.methods.get_mut(&name) {
                bindings.watchers.remove(&place);
            }
        }
        self.everything.watchers.remove(&place);
        self.due.remove(&place);
    }

    /// True when the steps together prove that a step leaves the value of a name as it is, although its source alone
    /// does not show that.
    pub(super) fn is_left(&mut self, place: Place, one: &NameUse) -> bool {
        let Some(needs) = &one.proof else { return false };
        self.looked.entry(place).or_default();
        self.everything.watchers.insert(place);
        if self.is_off || self.everything.is_bound() {
            return false;
        }
        let mut assumed = Vec::new();
        self.is_inert(place, &one.name)
            || (!needs.is_empty() && needs.iter().all(|need| self.holds(place, need, &mut assumed)))
    }

    /// True when an obligation is met. Functions that the proof is in already are assumed to meet theirs: one that
    /// calls itself changes something only if it does so elsewhere.
    fn holds(&mut self, place: Place, need: &Obligation, assumed: &mut Vec<VariableName>) -> bool {
        match need {
            Obligation::Inert(name) => self.is_inert(place, name),
            Obligation::Leaves(function) => match self.kind(place, &function.root) {
                Some(ValueKind::Function(needs)) if function.path.is_empty() => {
                    self.function_holds(place, &function.root, &needs, assumed)
                }
                kind => member(kind, function).is_some_and(|name| leaves(&name)),
            },
            Obligation::Fresh(function) => {
                let kind = self.kind(place, &function.root);
                member(kind, function).is_some_and(|name| is_fresh(&name))
            }
            Obligation::Method(name) => !self.is_defined(place, ANY_METHOD) && !self.is_defined(place, name),
            Obligation::Any(any) => any.iter().any(|need| self.holds(place, need, assumed)),
        }
    }

    fn function_holds(
        &mut self,
        place: Place,
        name: &VariableName,
        needs: &Arc<[Obligation]>,
        assumed: &mut Vec<VariableName>,
    ) -> bool {
        if assumed.contains(name) {
            return true;
        }
        let before = assumed.len();
        if before >= FUNCTIONS_MAX {
            return false;
        }
        assumed.push(name.clone());
        let holds = needs.iter().all(|need| self.holds(place, need, assumed));
        if !holds {
            assumed.truncate(before);
        }
        holds
    }

    fn is_inert(&mut self, place: Place, name: &VariableName) -> bool {
        self.kind(place, name).is_some_and(|kind| is_inert(&kind))
    }

    fn kind(&mut self, place: Place, name: &VariableName) -> Option<ValueKind> {
        let bindings = self.names.entry(name.clone()).or_default();
        if bindings.watchers.insert(place) {
            self.looked.entry(place).or_default().names.push(name.clone());
        }
        bindings.kind().cloned()
    }

    fn is_defined(&mut self, place: Place, method: &str) -> bool {
        let name = VariableName::from(method);
        let bindings = self.methods.entry(name.clone()).or_default();
        if bindings.watchers.insert(place) {
            self.looked.entry(place).or_default().methods.push(name);
        }
        bindings.is_bound()
    }
}

/// The name of a module's member, with dots.
fn member(kind: Option<ValueKind>, function: &DottedName) -> Option<String> {
    match kind {
        Some(ValueKind::Module(name) | ValueKind::Member(name)) => Some(format!("{name}{}", function.path)),
        Some(ValueKind::Plain | ValueKind::Function(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Graph, StepId};
    use crate::{Observed, Python};
    use std::sync::Arc;

    fn graph(sources: &[&str]) -> Graph {
        let mut graph = Graph::new(Arc::new(Python::default()));
        for (at, source) in sources.iter().enumerate() {
            graph.add_step(StepId::new(format!("s{at}")), (*source).to_owned()).expect("a new step");
        }
        graph
    }

    /// The names that the last step may change.
    #[track_caller]
    fn check(sources: &[&str], expected: &str) {
        let graph = graph(sources);
        let last = graph.steps().last().expect("a step").id.clone();
        let names: Vec<String> = graph.changed_by(&last).expect("known").iter().map(ToString::to_string).collect();
        assert_eq!(names.join(" "), expected, "by the last of {sources:#?}");
    }

    #[test]
    fn modules_numbers_and_texts_stay_as_they_are() {
        check(&["import json", "json.dumps(1)"], "");
        check(&["import os.path as path", "path.join(a, b)"], "");
        check(&["import numpy as np", "np.anything(np)"], "");
        check(&["name = 'a'\nlimit = -5\nis_on = not x", "f(name, limit, is_on)"], "");
        check(&["name = 'a'", "name = ['a']", "f(name)"], "name");
        check(&["import json", "json = Fake()", "json.dumps(1)"], "json");
        check(&["import json", "json.dumps(rows)\njson.dumps = f"], "json rows");
        // Their state goes from step to step.
        check(&["import random", "random.seed(1)"], "random");
        check(&["import random", "random.choice(xs)"], "random");
        check(&["json.dumps(1)"], "json");
    }

    #[test]
    fn functions_of_the_library_leave_their_arguments_as_they_are() {
        check(&["import json, math", "json.dumps(rows), math.sqrt(n)"], "");
        check(&["import json", "json.dump(rows, f)"], "f rows");
        check(&["from math import sqrt", "sqrt(n)"], "");
        check(&["from m import sqrt", "sqrt(n)"], "n");
        check(&["from datetime import datetime", "datetime.strptime(text, form)"], "");
        check(&["from collections import Counter", "Counter(words)"], "");
        check(&["import os", "os.path.join(a, b)"], "");
        check(&["import random", "random.shuffle(xs)"], "random xs");
    }

    #[test]
    fn methods_that_only_look_change_nothing_unless_a_step_defines_one_of_their_name() {
        check(&["for k, v in d.items(): print(k, v)"], "k v");
        check(&["parts = text.strip().split(',')"], "parts");
        check(&["n = d.get(key, 0)"], "n");
        check(&["class Box:\n    def items(self): self.n += 1", "for k in d.items(): print(k)"], "d k");
        check(&["box.items = f", "for k in d.items(): print(k)"], "d k");
        check(&["setattr(box, name, f)", "for k in d.items(): print(k)"], "d k");
        check(&["n = queue.get()\nm = queue.get(True)"], "m n queue");
        check(&["d.pop(1)"], "d");
        check(&["frame.replace(1, 2, inplace=True)"], "frame");
        check(&["print(', '.join(names))"], "");
        check(&["n = list(map(int, names))"], "n");
    }

    #[test]
    fn what_a_value_gives_away_is_followed() {
        check(&["row = d.get(key)\nrow.append(1)"], "d row");
        check(&["row = d.get(key)\nother = row\nother['a'] = 1"], "d other row");
        check(&["d.get(key).append(1)"], "d");
        check(&["d.get(key)['a'] = 1"], "d");
        check(&["for rows in d.values(): rows.append(1)"], "d rows");
        check(&["[rows.append(1) for rows in d.values()]"], "d");
        check(&["def f(): return d.get(key)\nf().append(1)"], "d f");
        check(&["f(d.get(key))"], "d");
        check(&["kept = []\nkept.append(d.get(key))\nkept[0].append(1)"], "d kept");
        check(&["kept = []\nkept.append(d.get(key))"], "kept");
        check(&["match d.get(key):\n    case [*rows]: rows.append(1)"], "d rows");
        check(&["(row := d.get(key)).append(1)"], "d row");
        check(&["with d.get(key) as row: row.append(1)"], "d row");
        check(&["import json", "text = json.dumps(rows)\ntext.x = 1"], "text");
        check(&["import copy", "other = copy.copy(rows)\nother[0].x = 1"], "other rows");
    }

    #[test]
    fn functions_that_change_nothing_of_others_are_proved_to() {
        let mean =
            "def mean(xs):\n    total = 0\n    for x in xs:\n        total += x['price']\n    return total / len(xs)";
        check(&[mean, "m = mean(rows)"], "m");
        let clean = "def clean(rows):\n    out = []\n    for row in rows:\n        name = row['name'].strip().lower()\n        \
                     out.append({'name': name})\n    return sorted(out, key=lambda r: r['name'])";
        check(&[clean, "tidy = clean(rows)"], "tidy");
        let count = "def count(words):\n    found = {}\n    for word in words:\n        found[word] = found.get(word, 0) + 1\n    \
                     return found";
        check(&[count, "n = count(words)"], "n");
        let by = "from collections import defaultdict\ndef by(rows):\n    sums = defaultdict(int)\n    for row in rows:\n        \
                  sums[row['k']] += row['n']\n    return sums";
        check(&[by, "n = by(rows)"], "n");
        check(&["def even(n): return n == 0 or odd(n - 1)", "def odd(n): return n > 0 and even(n - 1)", "even(n)"], "");
        check(&["import json", "def show(x): return json.dumps(x)", "show(rows)"], "");
        check(&["def head(path):\n    with open(path) as f:\n        return f.read()", "text = head(path)"], "text");
    }

    #[test]
    fn a_function_that_may_change_what_it_is_given_is_not() {
        for body in [
            "x.append(1)",
            "x[0] = 1",
            "x.a = 1",
            "x += [1]",
            "for y in x: y.append(1)",
            "y = x\n    y.append(1)",
            "y = x[0]\n    y['a'] = 1",
            "y = [x]\n    y[0].append(1)",
            "y = []\n    y.append(x)\n    y[0] += [1]",
            "unknown(x)",
            "unknown()",
            "log.append(x)",
            "global n\n    n = 1",
            "yield x",
            "def g(): x.append(1)\n    g()",
            "list = x\n    y = list(x)\n    y.append(1)",
            "exec('1')",
            "x.pop()",
            "del x[0]",
            "key(x)",
        ] {
            check(&[&format!("def f(x, key=None):\n    {body}"), "f(rows)"], "rows");
        }
        check(&["@wraps\ndef f(x): return 1", "f(rows)"], "rows");
        check(&["async def f(x): return 1", "f(rows)"], "rows");
        check(&["def f(x): return 1", "f = other", "f(rows)"], "rows");
        check(&["def f(x): return 1", "f.kept = []", "f(rows)"], "rows");
        check(&["def f(x): return g(x)", "def g(x): x.append(1)", "f(rows)"], "rows");
        check(&["list = odd\ndef f(x):\n    y = list(x)\n    y.append(1)", "f(rows)"], "rows");
    }

    #[test]
    fn a_step_that_may_bind_any_name_ends_all_proofs() {
        check(&["import json", "from m import *", "json.dumps(rows)"], "json rows");
        check(&["import json", "json.dumps(rows)"], "");
        let mut graph = graph(&["import json", "json.dumps(rows)"]);
        let second = StepId::from("s1");
        assert!(graph.changed_by(&second).expect("known").is_empty());
        graph.add_step("s2".into(), "exec(text)".into()).expect("a new step");
        assert_eq!(graph.changed_by(&second).expect("known").len(), 2);
        graph.remove_step(&"s2".into()).expect("known");
        assert!(graph.changed_by(&second).expect("known").is_empty());
    }

    #[test]
    fn a_proof_follows_the_edits_of_the_steps_that_it_is_about() {
        let mut graph = graph(&["def g(x): return len(x)", "def f(x): return g(x)", "f(rows)", "print(rows)"]);
        let (user, function) = (StepId::from("s2"), StepId::from("s0"));
        let changed = |graph: &Graph| graph.changed_by(&user).expect("known").len();
        assert_eq!((changed(&graph), graph.edges_into(&"s3".into()).expect("known").len()), (0, 0));
        let stale = graph.change_step(&function, "def g(x): x.clear()".into()).expect("changed");
        // The reader of `rows` depends on the step that may change them now.
        let stale: Vec<&str> = stale.iter().map(StepId::as_str).collect();
        assert_eq!((changed(&graph), stale), (1, vec!["s0", "s1", "s2", "s3"]));
        graph.change_step(&function, "def g(x): return len(x)".into()).expect("changed");
        assert_eq!(changed(&graph), 0);
        graph.add_step("s4".into(), "g = other".into()).expect("a new step");
        assert_eq!(changed(&graph), 1);
        graph.remove_step(&"s4".into()).expect("known");
        assert_eq!(changed(&graph), 0);
        // The observation of a run counts more than a proof.
        let seen = Observed { writes: ["rows".into()].into(), ..Observed::default() };
        assert_eq!(graph.observe(&user, &seen).expect("known").len(), 1);
        assert_eq!(changed(&graph), 1);
        assert!(graph.edges_into(&"s3".into()).expect("known")[0].observed);
    }

    #[test]
    fn proofs_end_where_an_edge_against_insertion_order_was_asked_for() {
        let mut graph = graph(&["import json", "json.dumps(rows)", "print(rows)"]);
        let user = StepId::from("s1");
        assert!(graph.add_edge(&"s2".into(), &user, [].into()).is_err(), "without the proof it is a cycle");
        assert!(graph.changed_by(&user).expect("known").is_empty());
        graph.add_edge(&"s2".into(), &"s0".into(), [].into()).expect_err("a cycle, too");
        assert!(graph.changed_by(&user).expect("known").is_empty());
    }
}
