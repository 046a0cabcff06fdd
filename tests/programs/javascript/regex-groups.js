const m = /(?<y>\d{4})-(?<m>\d\d)(?:-(?<d>\d\d))?/.exec("on 2024-05 and");
console.log(m.groups.y, m.groups.d, m.index, m.slice(0, 3), { ...m.groups });
console.log("2024-05-06".replace(/(\d+)-(\d+)-(\d+)/, "$3/$2/$1 $& $$"), "john smith".replace(/(?<f>\w+) (?<l>\w+)/, "$<l>, $<f>"));
