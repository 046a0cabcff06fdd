console.log(new Date("2024-01-01T12:00:00Z").toLocaleString("en-US", { timeZone: "America/New_York" }));
