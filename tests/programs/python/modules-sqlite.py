import sqlite3
db = sqlite3.connect(":memory:"); db.execute("create table t (a, b)"); db.executemany("insert into t values (?, ?)", [(1, "x"), (2, "y")])
print(db.execute("select b from t where a > 1").fetchall())
