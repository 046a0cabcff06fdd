try: raise ExceptionGroup("many", [ValueError("a"), TypeError("b"), ValueError("c")])
except* ValueError as g: print([str(e) for e in g.exceptions])
except* TypeError as g: print("type", len(g.exceptions))
