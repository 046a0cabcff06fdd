const d = new Date(Date.UTC(2024, 1, 29, 13, 5, 9, 7));
console.log(d.toISOString(), d.getUTCDay(), d.getTime(), JSON.stringify({ d }), d.toJSON());
console.log(new Date("2024-03-01").getTime(), Date.parse("2024-03-01T10:00:00+02:00"), new Date(NaN).getTime());
