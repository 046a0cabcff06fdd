import ast
t = ast.parse("x = 1 + f(y)")
print(ast.unparse(t), [type(n).__name__ for n in ast.walk(t)][:4], ast.literal_eval("[1, {'a': (2,)}]"), eval("1 + 2"))
