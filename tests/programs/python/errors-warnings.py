import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always"); warnings.warn("old", DeprecationWarning)
print(len(caught), caught[0].category.__name__, caught[0].message)
