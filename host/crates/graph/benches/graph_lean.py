"""The lean stand-in of the benchmark: the least that a Python program would do with `ast` and networkx.

Straight-line code and edges without names; it is a floor, and what people use does more: see `graph_full.py`.

Reads {"rounds": n, "steps": [[id, source], ...]} and writes the least seconds of all that is timed, and what was
found: the number of edges, of steps to replay, and the last of them. It keeps a list of writers for each name and is no
slower than it needs to be.
"""

import ast
import builtins
import json
import sys
import time

import networkx

BUILTINS = frozenset(dir(builtins))


class Names(ast.NodeVisitor):
    """Reads that no assignment of the step comes before, and writes; straight-line code is all that is timed."""

    def __init__(self):
        self.reads, self.writes = set(), set()

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.writes and node.id not in BUILTINS:
                self.reads.add(node.id)
        else:
            self.writes.add(node.id)


def infer(steps):
    graph, writer, order = networkx.DiGraph(), {}, {}
    for number, (name, source) in enumerate(steps):
        names = Names()
        names.visit(ast.parse(source))
        graph.add_node(name, source=source, reads=names.reads, writes=names.writes)
        order[name] = number
        for read in names.reads:
            if read in writer:
                graph.add_edge(writer[read], name)
        for written in names.writes:
            writer[written] = name
    return graph, order


def once(steps):
    graph, order = infer(steps)
    edges = graph.number_of_edges()
    stale = networkx.descendants(graph, "s0") | {"s0"}
    for name in stale:
        graph.nodes[name]["stale"] = True
    replay = list(networkx.lexicographical_topological_sort(graph.subgraph(stale), key=order.__getitem__))
    return graph, [edges, len(replay), replay[-1]]


def main():
    asked = json.load(sys.stdin)
    times = []
    for _ in range(asked["rounds"]):
        began = time.perf_counter()
        graph, found = once(asked["steps"])
        times.append(time.perf_counter() - began)
        # Neither side's end of the graph is timed.
        del graph
    json.dump({"seconds": min(times), "found": found}, sys.stdout)


main()
