const log = ["2024-01-01 ERROR db down", "2024-01-01 INFO start", "2024-01-02 ERROR disk full"];
const parsed = log.map((l) => l.match(/^(?<day>\S+) (?<level>\w+) (?<text>.*)$/).groups);
console.log(parsed.filter((l) => l.level === "ERROR").map(({ day, text }) => `${day}: ${text}`));
console.log(parsed[0]);
