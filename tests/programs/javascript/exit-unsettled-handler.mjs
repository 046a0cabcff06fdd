process.on("exit", (code) => console.log("code", code));
await new Promise(() => {});
