const EventEmitter = require("events");
class Chat extends EventEmitter { say(t) { this.emit("message", { t }); return this; } }
const c = new Chat();
c.on("message", ({ t }) => console.log("1", t)).prependListener("message", ({ t }) => console.log("0", t));
c.say("hi").off("message", () => {}).say("yo");
try { c.emit("error", new Error("unheard")); } catch (e) { console.log(e.message); }
