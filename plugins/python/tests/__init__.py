"""Tests of the tool `python` in the interpreter of whoever runs them: `python3 -m unittest` in the folder above."""
