const t = new EventTarget();
t.addEventListener("x", (e) => console.log(e.type, e instanceof Event, e.target === t), { once: true });
t.addEventListener("x", { handleEvent: (e) => { e.preventDefault(); console.log("object"); } });
console.log(t.dispatchEvent(new Event("x", { cancelable: true })), t.dispatchEvent(new Event("x")));
