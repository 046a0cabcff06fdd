import re
camel = lambda s: re.sub(r"[-_ ](\w)", lambda m: m[1].upper(), s)
snake = lambda s: re.sub(r"(?<!^)([A-Z])", r"_\1", s).lower()
print(camel("my-long_name here"), snake("myLongName"), "hello world".title(), "abc"[::-1].capitalize())
