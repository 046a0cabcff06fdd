Promise.resolve().then(() => process.exit(7));
setTimeout(() => console.log("never"), 5);
