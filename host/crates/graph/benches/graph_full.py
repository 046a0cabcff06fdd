"""The full stand-in of the benchmark: a graph of Python steps with `ast` and networkx that passes the cases.

Where `graph_lean.py` knows straight-line code and edges without names, this one knows what the suites `esg_*` ask
for: scopes, names that are certain on every path, deletions, changes of values in place, and edges that hold their
variables with a reason each. It is written to be read and to be quick: one pass over the tree, no copy of what is
certain but where paths part, a list of writers for each name, and the walk back ends at the first that is certain.

    graph_full.py --cases DIRECTORY    runs the suites; says which cases fail, and fails then
    graph_full.py                      the protocol of `graph_lean.py`; what was found holds every edge
"""

import ast
import builtins
import json
import pathlib
import sys
import time

import networkx

BUILTINS = frozenset(dir(builtins)) | {"__file__", "__builtins__", "__annotations__"}


class Scope:
    """A function, class or comprehension that the walk is in."""

    __slots__ = ("is_class", "is_comprehension", "locals", "globals")

    def __init__(self, names=frozenset(), globals=frozenset(), is_class=False, is_comprehension=False):
        self.locals, self.globals = names, globals
        self.is_class, self.is_comprehension = is_class, is_comprehension


class Bindings(ast.NodeVisitor):
    """The names that a body binds, which are its locals wherever in it they are bound."""

    def __init__(self):
        self.bound, self.globals, self.nonlocals = set(), set(), set()

    def scope(self, is_class=False):
        return Scope(self.bound - self.globals - self.nonlocals, self.globals, is_class)

    def body(self, body):
        for statement in body:
            self.visit(statement)
        return self

    def parameters(self, arguments):
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if one is not None:
                self.bound.add(one.arg)
        return self

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def visit_Constant(self, node):
        pass

    def visit_Global(self, node):
        self.globals.update(node.names)

    def visit_Nonlocal(self, node):
        self.nonlocals.update(node.names)

    def visit_definition(self, node):
        self.bound.add(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)
        if isinstance(node, ast.ClassDef):
            for base in (*node.bases, *node.keywords):
                self.visit(base)
        else:
            self.defaults(node.args)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_definition

    def defaults(self, arguments):
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)

    def visit_Lambda(self, node):
        self.defaults(node.args)

    def visit_comprehension_of(self, node):
        # Targets are the comprehension's own; what `:=` binds in it is not.
        walrus = Bindings()
        walrus.generic_visit(node)
        for generator in node.generators:
            walrus.bound -= targets(generator.target)
        self.bound |= walrus.bound

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of

    def visit_alias(self, node):
        self.bound.add(node.asname or node.name.partition(".")[0])

    def visit_ExceptHandler(self, node):
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node):
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node):
        if node.rest:
            self.bound.add(node.rest)
        self.generic_visit(node)


def targets(target):
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


class Effects(ast.NodeVisitor):
    """What a step reads before it is certain, writes, deletes and changes in place, each for the steps' namespace.

    `state` says what is certain where the walk is: True for a name that every path has bound, False for one that every
    path has bound or unbound. A name of a class is kept there with the class's scope beside it.
    """

    def __init__(self):
        self.reads, self.writes, self.deletes, self.mutates = set(), set(), [], {}
        self.state, self.live = {}, True
        self.scopes, self.deferred, self.pending = [], 0, set()

    # Names.

    def meaning(self, name):
        """None for the steps' namespace, a scope for a class's name, True for a local."""
        inner = False
        for scope in reversed(self.scopes):
            if scope.is_class and inner:
                continue
            if name in scope.globals:
                return None
            if name in scope.locals:
                return scope if scope.is_class else True
            inner = True
        return None

    def read(self, name):
        if self.scopes:
            meaning = self.meaning(name)
            if meaning is True or (meaning is not None and (meaning, name) in self.state):
                return
        if self.deferred:
            self.pending.add(name)
        elif name not in self.state:
            self.reads.add(name)

    def bind(self, name, meaning=None):
        if self.scopes and meaning is None:
            meaning = self.meaning(name)
        if meaning is None:
            self.writes.add(name)
            if not self.deferred:
                self.state[name] = True
        elif meaning is not True:
            self.state[meaning, name] = True

    def unbind(self, name):
        meaning = self.meaning(name)
        if meaning is True:
            return
        key = name if meaning is None else (meaning, name)
        if meaning is None:
            self.deletes.append(name)
        if meaning is not None or not self.deferred:
            self.state[key] = False

    def mutate(self, node, reason):
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Await)):
            node = node.value
        if isinstance(node, ast.Name) and self.meaning(node.id) is None:
            self.mutates.setdefault(node.id, reason)

    def called(self):
        """Code that is not seen here may run now, and with it the functions that were defined before."""
        if self.pending and not self.deferred:
            self.reads.update(name for name in self.pending if name not in self.state)
            self.pending.clear()

    # Paths.

    def branch(self, *bodies):
        """Walks bodies from what is certain now, takes that back, and answers how it ended."""
        before, live = self.state, self.live
        self.state = dict(before)
        for body in bodies:
            self.walk(body)
        ended = (self.state, self.live)
        self.state, self.live = before, live
        return ended

    def walk(self, body):
        for node in body:
            self.visit(node)

    def join(self, ends):
        live = [state for state, live in ends if live]
        self.live = bool(live)
        if live:
            first, *others = live
            self.state = {
                name: bound and all(state[name] for state in others)
                for name, bound in first.items()
                if all(name in state for state in others)
            }

    def maybe(self, *bodies):
        self.join([self.branch(*bodies), (self.state, self.live)])

    def jump(self, node):
        self.generic_visit(node)
        if not self.deferred:
            self.live = False

    visit_Return = visit_Raise = visit_Break = visit_Continue = jump

    # Expressions.

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.read(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.bind(node.id)
        else:
            self.read(node.id)
            self.unbind(node.id)

    def visit_Constant(self, node):
        pass

    def visit_Attribute(self, node):
        self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            self.mutate(node, "attribute-store")

    def visit_Subscript(self, node):
        self.visit(node.value)
        self.visit(node.slice)
        if not isinstance(node.ctx, ast.Load):
            self.mutate(node, "subscript-store")

    def visit_NamedExpr(self, node):
        self.visit(node.value)
        # A comprehension does not keep the name.
        scopes = self.scopes
        while self.scopes and self.scopes[-1].is_comprehension:
            self.scopes = self.scopes[:-1]
        self.bind(node.target.id)
        self.scopes = scopes

    def visit_BoolOp(self, node):
        self.visit(node.values[0])
        self.maybe(node.values[1:])

    def visit_Compare(self, node):
        self.visit(node.left)
        self.visit(node.comparators[0])
        if len(node.comparators) > 1:
            self.maybe(node.comparators[1:])

    def visit_IfExp(self, node):
        self.visit(node.test)
        self.join([self.branch([node.body]), self.branch([node.orelse])])

    def visit_Call(self, node):
        self.generic_visit(node)
        self.called()

    def visit_Await(self, node):
        self.generic_visit(node)
        self.called()

    visit_Yield = visit_YieldFrom = visit_Await

    def visit_Lambda(self, node):
        self.defaults(node.args)
        scope = Bindings().parameters(node.args).body([node.body]).scope()
        self.later(scope, [node.body])

    def visit_comprehension_of(self, node):
        self.visit(node.generators[0].iter)
        names = set().union(*(targets(generator.target) for generator in node.generators))
        self.scopes.append(Scope(names, is_comprehension=True))
        parts = []
        for number, generator in enumerate(node.generators):
            parts += ([generator.iter] if number else []) + [generator.target, *generator.ifs]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.maybe(parts)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of

    # Statements.

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.read(node.target.id)
        self.visit(node.value)
        self.visit(node.target)

    def visit_AnnAssign(self, node):
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_TypeAlias(self, node):
        self.later(Scope(), [node.value])
        self.visit(node.name)

    def visit_alias(self, node):
        if node.name != "*":
            self.bind(node.asname or node.name.partition(".")[0])

    def visit_Assert(self, node):
        self.visit(node.test)
        if node.msg:
            self.maybe([node.msg])

    def visit_If(self, node):
        self.visit(node.test)
        self.join([self.branch(node.body), self.branch(node.orelse)])

    def visit_For(self, node):
        self.visit(node.iter)
        self.loop([node.target], node)

    visit_AsyncFor = visit_For

    def visit_While(self, node):
        self.visit(node.test)
        self.loop([], node)

    def loop(self, target, node):
        """A loop may run no time at all, and be left anywhere: only what was certain before it is after it."""
        deleted = len(self.deletes)
        self.branch(target, node.body)
        self.doubt(deleted)
        if any(isinstance(inner, ast.Break) for inner in ast.walk(node)):
            self.maybe(node.orelse)
        else:
            self.walk(node.orelse)

    def doubt(self, deleted):
        """Names that were deleted since are no more certain to be bound: that may have happened, or not."""
        for name in self.deletes[deleted:]:
            if self.state.get(name):
                self.state[name] = False

    def visit_With(self, node):
        for item in node.items:
            self.visit(item.context_expr)
            self.called()
            if item.optional_vars is not None:
                self.visit(item.optional_vars)
        self.walk(node.body)

    visit_AsyncWith = visit_With

    def visit_Try(self, node):
        deleted = len(self.deletes)
        ends = [self.branch(node.body, node.orelse)]
        # A handler is reached from anywhere in the body, and `finally` from anywhere in both.
        before = self.state
        self.state = dict(before)
        self.doubt(deleted)
        ends += [self.branch([handler]) for handler in node.handlers]
        if node.finalbody:
            self.state = dict(before)
            self.doubt(deleted)
            self.branch(node.finalbody)
        self.join(ends)
        if node.finalbody:
            self.walk(node.finalbody)

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node):
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self.bind(node.name)
        self.walk(node.body)
        if node.name:
            self.unbind(node.name)

    def visit_Match(self, node):
        self.visit(node.subject)
        ends, past = [], True
        for case in node.cases:
            ends.append(self.branch([case.pattern], [case.guard] if case.guard else [], case.body))
            past = past and (case.guard is not None or refutable(case.pattern))
        if past:
            ends.append((self.state, self.live))
        self.join(ends)

    def visit_MatchAs(self, node):
        self.generic_visit(node)
        if node.name:
            self.bind(node.name)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node):
        self.generic_visit(node)
        if node.rest:
            self.bind(node.rest)

    def visit_FunctionDef(self, node):
        self.walk(node.decorator_list)
        self.defaults(node.args)
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
            if one is not None and one.annotation is not None:
                self.visit(one.annotation)
        if node.returns is not None:
            self.visit(node.returns)
        self.later(Bindings().parameters(node.args).body(node.body).scope(), node.body)
        if node.decorator_list:
            self.called()
        self.bind(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.walk(node.decorator_list)
        self.walk(node.bases)
        self.walk(node.keywords)
        self.scopes.append(Bindings().body(node.body).scope(is_class=True))
        self.walk(node.body)
        self.scopes.pop()
        if node.bases or node.keywords or node.decorator_list:
            self.called()
        self.bind(node.name)

    def defaults(self, arguments):
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)

    def later(self, scope, body):
        """A body that runs when it is called."""
        self.scopes.append(scope)
        self.deferred += 1
        before, live = self.state, self.live
        self.walk(body)
        self.state, self.live = before, live
        self.deferred -= 1
        self.scopes.pop()


def refutable(pattern):
    if isinstance(pattern, ast.MatchOr):
        return all(refutable(one) for one in pattern.patterns)
    return not isinstance(pattern, ast.MatchAs) or (pattern.pattern is not None and refutable(pattern.pattern))


def effects_of(source):
    effects = Effects()
    effects.walk(ast.parse(source).body)
    # A later step may call what was defined here.
    effects.called()
    effects.reads -= BUILTINS
    return effects


class StepError(Exception):
    """Why a graph was not changed."""


class StepGraph:
    """Steps in insertion order; an edge holds its variables, each with the reason for which it matters."""

    def __init__(self):
        self.graph, self.order, self.writers = networkx.DiGraph(), {}, {}

    def add_step(self, name, source):
        if name in self.order:
            raise StepError("duplicate step id")
        effects = effects_of(source)
        self.order[name] = len(self.order)
        self.graph.add_node(name, source=source, effects=effects, stale=True)
        for read in effects.reads:
            for writer, reason, settles in reversed(self.writers.get(read, ())):
                edge = self.graph.get_edge_data(writer, name)
                if edge is None:
                    self.graph.add_edge(writer, name, variables={read: reason})
                else:
                    edge["variables"][read] = reason
                if settles:
                    break
        for changed in effects.writes.union(effects.deletes, effects.mutates):
            self.writers.setdefault(changed, []).append((name, self.reason(effects, changed), changed in effects.state))

    @staticmethod
    def reason(effects, name):
        if name in effects.writes:
            return "written"
        return "deleted" if name in effects.deletes else effects.mutates[name]

    def add_edge(self, source, target):
        if source not in self.order or target not in self.order:
            raise StepError("unknown step id")
        if networkx.has_path(self.graph, target, source):
            raise StepError("cycle")
        if not self.graph.has_edge(source, target):
            self.graph.add_edge(source, target, variables={})

    def sorted(self, names):
        return sorted(names, key=self.order.__getitem__)

    def descendants(self, name):
        return networkx.descendants(self.graph, name) | {name}

    def mark_stale(self, name):
        stale = self.descendants(name)
        for one in stale:
            self.graph.nodes[one]["stale"] = True
        return self.sorted(stale)

    def ancestors(self, name):
        return self.sorted(networkx.ancestors(self.graph, name))

    def replay_from(self, name):
        affected = self.graph.subgraph(self.descendants(name))
        return list(networkx.lexicographical_topological_sort(affected, key=self.order.__getitem__))


# The benchmark.


def once(steps):
    graph = StepGraph()
    for name, source in steps:
        graph.add_step(name, source)
    graph.mark_stale("s0")
    return graph, graph.replay_from("s0")


def timed(asked):
    times = []
    for _ in range(asked["rounds"]):
        began = time.perf_counter()
        graph, replay = once(asked["steps"])
        times.append(time.perf_counter() - began)
        edges = [[*ends, variables] for *ends, variables in graph.graph.edges(data="variables")]
        edges.sort(key=lambda edge: (graph.order[edge[1]], graph.order[edge[0]]))
        found = {"edges": edges, "replay": replay}
        # Neither side's end of the graph is timed.
        del graph
    json.dump({"seconds": min(times), "found": found}, sys.stdout)


# The cases.


def reads_writes(case):
    try:
        effects = effects_of(case["source"])
    except SyntaxError:
        return {"error": "syntax"}
    definite = (name for name, bound in effects.state.items() if bound and isinstance(name, str))
    found = {"reads": effects.reads, "writes": effects.writes, "definite_writes": definite, "mutates": effects.mutates}
    return {field: sorted(names) for field, names in found.items()}


def program(case):
    graph = StepGraph()
    for name, source in case["steps"]:
        graph.add_step(name, source)
    expected = case["expected"]
    # The order of a list of edges means nothing.
    expected["edges"].sort()
    return {
        "edges": sorted(map(list, graph.graph.edges)),
        "ancestors_of_last": graph.ancestors(case["steps"][-1][0]),
        "stale_if_changed": {name: graph.mark_stale(name) for name in expected["stale_if_changed"]},
        "replay_from": {name: graph.replay_from(name) for name in expected["replay_from"]},
    }


def explicit(case):
    graph = StepGraph()
    for name in case["insertion_order"]:
        graph.add_step(name, "")
    for ends in case["edges"]:
        graph.add_edge(*ends)
    root = case["root"]
    return {
        "stale": graph.mark_stale(root),
        "replay_from": graph.replay_from(root),
        "ancestors": graph.ancestors(root),
        "subgraph_from": graph.sorted(graph.descendants(root)),
    }


def refused(case):
    graph = StepGraph()
    last = "ok"
    for operation, *arguments in case["ops"]:
        before = (list(graph.graph.nodes), list(graph.graph.edges))
        try:
            getattr(graph, operation)(*arguments)
            last = "ok"
        except StepError as error:
            unchanged = before == (list(graph.graph.nodes), list(graph.graph.edges))
            last = f"error: {error}" if unchanged else "error, and the graph is another"
    # Every error leaves the graph unchanged, as was checked above.
    case["expected"]["last_op"] = case["expected"]["last_op"].removesuffix(", graph unchanged")
    return {"last_op": last}


KINDS = {"reads_writes": reads_writes, "program": program, "graph": explicit, "graph_error": refused}


def cases(directory):
    """Runs every case of the three suites; files are picked by their field `suite`, never by their name."""
    ran, failed = {"esg_reads_writes": 0, "esg_programs": 0, "esg_graph": 0}, []
    for path in sorted(pathlib.Path(directory).glob("*.json")):
        file = json.loads(path.read_text())
        if not isinstance(file, dict) or file.get("suite") not in ran:
            continue
        for case in file["cases"]:
            ran[file["suite"]] += 1
            found = KINDS[case["kind"]](case)
            if found != case["expected"]:
                failed.append(f"{case['id']}: {found}, expected {case['expected']}")
    failed += [f"no case of the suite {suite} in {directory}" for suite, count in ran.items() if not count]
    if failed:
        sys.exit("\n".join(failed))
    print(sum(ran.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cases"]:
        cases(sys.argv[2])
    else:
        timed(json.load(sys.stdin))
