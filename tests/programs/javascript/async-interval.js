let n = 0;
const t = setInterval(() => { console.log("tick", ++n); if (n === 3) clearInterval(t); }, 1);
