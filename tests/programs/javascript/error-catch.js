try { null.x; } catch (e) { console.log(e instanceof TypeError, e.name); }
try { undefinedName; } catch (e) { console.log(e.name, e.message); }
try { throw { code: 5 }; } catch ({ code }) { console.log(code); }
try { JSON.parse("{bad"); } catch (e) { console.log(e.name); }
