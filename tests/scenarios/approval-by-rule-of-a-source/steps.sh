# A source is allowed for calls like the one that asked, and a host that is new is asked about: what it says is a source of
# its own.

longhaul run > ../ran
longhaul --json approvals | pick 'approvals[status=open]' tool untrusted_sources
reply a
# Another tool was not meant.
longhaul resume > ../ran
longhaul --json approvals | pick 'approvals[status=open]' tool untrusted_sources
reply a
longhaul resume > ../ran
told | pick 'posts[*]'
