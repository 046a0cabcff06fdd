const machine = { idle: { start: "running" }, running: { pause: "paused", stop: "idle" }, paused: { start: "running", stop: "idle" } };
let state = "idle";
for (const e of ["start", "pause", "bogus", "start", "stop"]) { const next = machine[state][e]; console.log(`${state} --${e}--> ${next ?? "ignored"}`); state = next ?? state; }
