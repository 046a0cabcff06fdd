const d = new Date("2024-07-04T15:30:00Z");
console.log(d.toLocaleDateString("en-US", { timeZone: "UTC" }), d.toLocaleTimeString("en-US", { timeZone: "UTC" }));
console.log(d.toLocaleDateString("en-US", { weekday: "long", year: "numeric", month: "long", day: "numeric", timeZone: "UTC" }));
console.log(d.toLocaleString("en-US", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" }));
console.log(d.toLocaleDateString("en-GB", { timeZone: "UTC" }), d.toLocaleString("en-US", { month: "short", day: "2-digit", timeZone: "UTC" }));
