console.log(JSON.parse('{"a":[1,2,{"b":null}],"c":"\\u0041"}', (k, v) => (Array.isArray(v) ? v.length : v)));
for (const bad of ["", "{", "[1,]", "undefined", "01"]) { try { JSON.parse(bad); } catch (e) { console.log(bad, e instanceof SyntaxError); } }
