"""The stand-in of the benchmark that is a library: functions and a class, each of which does what it says by itself.

Written as the documented interface of such a library has it. Reads and writes are asked for one after the other, and
each parses; edges are inferred from the sources and then added; the graph keeps what it is given, and parses nothing.
The last writer of a name is looked up in a dictionary, and all else is networkx's. Of Python it knows straight-line
code, as `graph_lean.py` does, whose protocol it has too.
"""

import ast
import builtins
import json
import sys
import time

import networkx

BUILTINS = frozenset(dir(builtins))


class Names(ast.NodeVisitor):
    """Reads that no assignment of the step comes before, and writes."""

    def __init__(self):
        self.reads, self.writes = set(), set()

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Store):
            self.writes.add(node.id)
        elif node.id not in self.writes and node.id not in BUILTINS:
            self.reads.add(node.id)


def names_of(source):
    names = Names()
    names.visit(ast.parse(source))
    return names


def get_reads(source):
    """The names that a source needs from the steps before it."""
    return names_of(source).reads


def get_writes(source):
    """The names that a source binds."""
    return names_of(source).writes


def infer_edges(steps):
    """(from, to) for each step that reads what an earlier one was the last to write."""
    writer, edges = {}, []
    for step, source in steps:
        edges += [(start, step) for start in {writer[name] for name in get_reads(source) if name in writer}]
        writer.update(dict.fromkeys(get_writes(source), step))
    return edges


class ExecutionStateGraph:
    def __init__(self):
        self._graph = networkx.DiGraph()

    def add_step(self, step, source):
        self._graph.add_node(step, source=source, stale=False)
        return step

    def add_edge(self, start, end):
        self._graph.add_edge(start, end)

    def get_node(self, step):
        return dict(self._graph.nodes[step])

    def get_ancestors(self, step, variables=None):
        """What a step depends on; with variables, only what those come from."""
        starts = self._graph.predecessors(step)
        if variables is not None:
            starts = (one for one in starts if get_writes(self._graph.nodes[one]["source"]) & set(variables))
        return self._ordered({one for start in starts for one in networkx.ancestors(self._graph, start) | {start}})

    def get_subgraph_from(self, step):
        return self._ordered(networkx.descendants(self._graph, step) | {step})

    def mark_stale(self, step):
        stale = networkx.descendants(self._graph, step) | {step}
        for one in stale:
            self._graph.nodes[one]["stale"] = True
        return stale

    def replay_from(self, step):
        return self.get_subgraph_from(step)

    def graph(self):
        return self._graph

    def _ordered(self, steps):
        return list(networkx.topological_sort(self._graph.subgraph(steps)))


def once(steps):
    graph = ExecutionStateGraph()
    edges = infer_edges(steps)
    for step, source in steps:
        graph.add_step(step, source)
    for start, end in edges:
        graph.add_edge(start, end)
    graph.mark_stale("s0")
    return graph, graph.replay_from("s0")


def main():
    asked = json.load(sys.stdin)
    times = []
    for _ in range(asked["rounds"]):
        began = time.perf_counter()
        graph, replay = once(asked["steps"])
        times.append(time.perf_counter() - began)
        found = [graph.graph().number_of_edges(), len(replay), replay[-1]]
        # Neither side's end of the graph is timed.
        del graph
    json.dump({"seconds": min(times), "found": found}, sys.stdout)


main()
