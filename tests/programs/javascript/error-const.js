const c = 1;
try { c = 2; } catch (e) { console.log(e.name, e.message); }
try { t; let t = 1; } catch (e) { console.log(e.name, e.message); }
