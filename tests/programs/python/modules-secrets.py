import secrets, os
print(len(secrets.token_hex(8)), secrets.randbelow(5) < 5, len(os.urandom(4)), secrets.compare_digest("a", "a"))
