const d = new Date("2024-12-25T08:05:03Z");
const f = (o) => new Intl.DateTimeFormat("en-US", { timeZone: "UTC", ...o }).format(d);
console.log([{}, { dateStyle: "full" }, { timeStyle: "medium" }, { month: "short", day: "numeric" }, { hour: "2-digit", minute: "2-digit", hour12: false }, { weekday: "short" }, { year: "2-digit", month: "2-digit", day: "2-digit" }].map(f));
console.log(new Intl.DateTimeFormat("en-US", { timeZone: "UTC", month: "long", year: "numeric" }).formatToParts(d));
