import difflib
print("\n".join(difflib.unified_diff(["a", "b"], ["a", "c"], lineterm="")), difflib.get_close_matches("appel", ["ape", "apple"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 2))
