import html, xml.etree.ElementTree as E
print(html.escape("<a href='x'>&"), html.unescape("&eacute;&#62;"))
r = E.fromstring("<r><i n='1'>a</i><i n='2'><b/>t</i></r>")
print([(i.get("n"), i.text) for i in r.iter("i")], r.find("i[@n='2']/b").tag, E.tostring(r).decode())
