import re
print(re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", "1234567"), re.findall(r"(?<=[$€])\d+", "$42 €17"), re.findall(r"foo(?!bar)\w+", "foobar foobaz"), re.sub(r"\b(\w)", lambda m: m[1].upper(), "the fox"))
