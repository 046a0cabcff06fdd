import uuid
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.com"), len(str(uuid.uuid4())), uuid.UUID(int=5), uuid.uuid4().version)
