import hashlib, hmac, base64, zlib, binascii
for a in ("md5", "sha1", "sha256", "sha512"): print(a, hashlib.new(a, b"hello world").hexdigest())
print(hmac.new(b"key", b"data", "sha256").hexdigest(), base64.b64encode(b"hi\xff"), base64.urlsafe_b64decode("_-8="), zlib.crc32(b"abc"), zlib.decompress(zlib.compress(b"x" * 50)) == b"x" * 50, binascii.hexlify(b"ab"))
