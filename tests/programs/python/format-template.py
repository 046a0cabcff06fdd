from string import Template, ascii_lowercase, digits, capwords
print(Template("$a and ${b}c $$").substitute(a=1, b=2), Template("$x").safe_substitute(), ascii_lowercase[:3], digits, capwords("hello big world"))
