function debounce(f, ms) { let t; return (...a) => { clearTimeout(t); t = setTimeout(() => f(...a), ms); }; }
const say = debounce(console.log, 5);
say(1); say(2); say(3);
