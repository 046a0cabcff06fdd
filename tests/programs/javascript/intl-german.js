console.log(new Date(Date.UTC(2024, 0, 5)).toLocaleDateString("de-DE", { timeZone: "UTC", month: "long", day: "numeric" }), (1234.5).toLocaleString("de-DE"));
