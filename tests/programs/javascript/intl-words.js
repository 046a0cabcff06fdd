console.log(new Intl.PluralRules("en", { type: "ordinal" }).select(22), new Intl.PluralRules("en").select(1));
console.log(new Intl.ListFormat("en").format(["a", "b", "c"]), new Intl.ListFormat("en", { type: "disjunction" }).format(["x", "y"]));
const r = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
console.log(r.format(-1, "day"), r.format(2, "weeks"), r.format(-3, "month"), r.format(0, "year"));
console.log([...new Intl.Segmenter("en", { granularity: "grapheme" }).segment("👨‍👩‍👧e\u0301x")].map((s) => s.segment).length);
